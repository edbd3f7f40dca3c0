"""Imports bt_acme first, so that tests may import Acme before bt_acme."""

import bt_acme  # noqa: F401
