"""Does each part learn what it is for? `python -m experiments.learning`."""
