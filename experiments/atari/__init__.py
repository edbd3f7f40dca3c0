"""Real Atari games on two cores: the commands `learn` and `explore`."""
