"""Learning real Atari games on two cores: `python -m experiments.atari`."""
