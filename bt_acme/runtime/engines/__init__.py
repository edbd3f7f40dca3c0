"""Engines, which run the nodes of a program."""
