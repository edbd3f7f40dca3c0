"""Real Atari, learned on two cores: `python -m experiments.atari`."""
