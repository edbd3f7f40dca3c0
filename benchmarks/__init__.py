"""Compares the speed of bt_acme with dm-acme and with hardware limits."""

import bt_acme  # noqa: F401  Installs the import hook that Acme needs.
