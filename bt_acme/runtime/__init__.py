"""Nodes of a run, the engines that run them, and the records of a run."""
