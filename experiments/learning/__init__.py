"""Tests claims about learning: `python -m experiments.learning`."""
