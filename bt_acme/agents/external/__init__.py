"""Behavior transfer for agents of other packages.

`behaviors/from_callable.py` wraps *policies* of other packages as behaviors.
"""
