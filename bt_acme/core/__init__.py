"""Learning and acting as pure functions of one environment or batch."""
