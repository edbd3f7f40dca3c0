"""A demo of behavior transfer: `python -m experiments.demo`."""
