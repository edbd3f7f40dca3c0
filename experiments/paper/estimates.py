"""Statistics over seeds and worlds, as the paper computes them.

A world's score is its mean over seeds, and the statistic is taken over worlds.
The interquartile mean is taken over all runs (Agarwal et al. 2021,
arXiv:2108.13264). Arrays are float64 [..., seeds, worlds].
"""

import functools
from typing import Any, Callable, Mapping

import numpy as np

from bt_acme.evaluation import intervals

Statistic = Callable[..., np.ndarray]


def mean(runs: Any) -> np.ndarray:
  """The mean over worlds: float64 [...]."""
  return np.mean(np.mean(runs, axis=-2), axis=-1)


def percentile(percent: float, runs: Any) -> np.ndarray:
  """A percentile over worlds, interpolated linearly: float64 [...]."""
  return np.percentile(np.mean(runs, axis=-2), percent, axis=-1)


def capped_mean(runs: Any) -> np.ndarray:
  """The mean of min(score, 100) over worlds, without a floor: float64 [...]."""
  return np.mean(np.minimum(np.mean(runs, axis=-2), 100), axis=-1)


def num_above(level: float, runs: Any) -> np.ndarray:
  """The number of worlds whose mean is above a level: float64 [...]."""
  return np.sum(np.mean(runs, axis=-2) > level, axis=-1).astype(np.float64)


median = functools.partial(percentile, 50)

METRICS: Mapping[str, Statistic] = {
  'median': median,
  'mean': mean,
  'capped_mean': capped_mean,
  'iqm': intervals.interquartile_mean,
  **{f'p{p}': functools.partial(percentile, p) for p in (50, 40, 20, 10, 5)},
  'num_above_random': functools.partial(num_above, 0),
  'num_above_human': functools.partial(num_above, 100),
}

# Titles of columns.
TITLES: Mapping[str, str] = {
  'score': 'score',
  'median': 'median',
  'mean': 'mean',
  'capped_mean': 'capped mean',
  'iqm': 'IQM',
  **{f'p{p}': f'{p}th percentile' for p in (50, 40, 20, 10, 5)},
  'num_above_random': 'worlds > 0',
  'num_above_human': 'worlds > 100',
}


def estimate(statistic: Statistic, *samples: Any) -> intervals.Estimate:
  """A statistic with its 95 % interval; NaN where a sample has one seed.

  Args:
    statistic: maps samples [..., seeds, worlds] to [...].
    *samples: float64 [seeds, worlds], one for each arm.
  """
  if min(sample.shape[0] for sample in samples) < 2:
    value = float(statistic(*samples))
    return intervals.Estimate(value, float('nan'), float('nan'))
  return intervals.bootstrap(statistic, *samples)
