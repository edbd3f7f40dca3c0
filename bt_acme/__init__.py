"""Behavior Transfer for value-based agents, on JAX, Haiku and Acme."""

from bt_acme import compat

compat.install()

__version__ = '0.1.0'
