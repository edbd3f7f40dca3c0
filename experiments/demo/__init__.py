"""From no rewards to a task solved: `python -m experiments.demo`."""
