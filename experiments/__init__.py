"""One module per experiment; run each as `python -m experiments.NAME`."""
