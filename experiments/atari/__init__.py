"""Real Atari games on two cores: the commands `scores` and `rooms`."""
