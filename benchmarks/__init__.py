"""Measures bt_acme against dm-acme, and against what no library can beat."""

import bt_acme  # noqa: F401  Its import hook lets every benchmark import Acme.
