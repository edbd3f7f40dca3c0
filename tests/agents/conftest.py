"""Lets every test of this folder import Acme before it imports bt_acme."""

import bt_acme  # noqa: F401
