"""Behavior transfer: flights, extra actions and relabeling."""
