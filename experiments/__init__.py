"""One module a question; each is run as `python -m experiments.NAME`."""
