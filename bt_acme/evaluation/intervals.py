"""Compares algorithms over a few seeds of several tasks.

The estimates are robust to outliers, and their confidence intervals show how
much they could change with other seeds. Source: Agarwal et al. 2021, "Deep RL
at the Edge of the Statistical Precipice", arXiv:2108.13264.

Runs are arrays [..., seeds, tasks] of scores on a common scale, such as
human-normalized scores in percent. Some statistics first average each task over
seeds, as the tables of Campos et al. 2021 do; the others use each run
separately. `over_points` applies any statistic to curves. All functions raise
ValueError for runs of another shape, and for NaN and infinity.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

_CHUNK = 2**22  # Maximum number of scores per call of a statistic.

Statistic = Callable[..., np.ndarray]


class Estimate(NamedTuple):
  """A statistic of runs, with its confidence interval.

  Each field is a float, or float64 [...] for a statistic of several values.
  `low` and `high` are NaN if the interval cannot be estimated.
  """

  value: Any
  low: Any
  high: Any


def mean(runs: Any) -> np.ndarray:
  """Computes the mean of all runs: [..., seeds, tasks] -> float64 [...]."""
  return np.mean(_task_scores(runs), axis=-1)


def median(runs: Any) -> np.ndarray:
  """Computes the median over tasks of the mean over seeds.

  Args:
    runs: float [..., seeds, tasks].

  Returns:
    float64 [...].
  """
  return np.median(_task_scores(runs), axis=-1)


def capped_mean(runs: Any, cap: float = 100.0) -> np.ndarray:
  """Computes the mean over tasks of min(mean over seeds, cap).

  Args:
    runs: float [..., seeds, tasks].
    cap: the upper limit per task, in the unit of the runs.

  Returns:
    float64 [...].
  """
  return np.mean(np.minimum(_task_scores(runs), cap), axis=-1)


def percentile(runs: Any, percent: float) -> np.ndarray:
  """Computes a percentile over tasks of the mean over seeds.

  Percentiles are interpolated linearly, as in Campos et al. 2021.

  Args:
    runs: float [..., seeds, tasks].
    percent: the percentage, in [0, 100].

  Returns:
    float64 [...].

  Raises:
    ValueError: if the percentage is out of range.
  """
  return np.percentile(_task_scores(runs), percent, axis=-1)


def num_above(runs: Any, level: float) -> np.ndarray:
  """Counts the tasks whose mean over seeds is above a level.

  Args:
    runs: float [..., seeds, tasks].
    level: the level, in the unit of the runs.

  Returns:
    float64 [...].
  """
  return np.sum(_task_scores(runs) > level, axis=-1, dtype=np.float64)


def performance_profile(runs: Any, taus: Any) -> np.ndarray:
  """Computes the share of runs above each score.

    F(tau) = mean over tasks and seeds of [run > tau]

  Source: Agarwal et al. 2021, Sec. 4.2, score distributions.

  Args:
    runs: float [..., seeds, tasks].
    taus: float [K].

  Returns:
    float64 [..., K], in [0, 1].
  """
  above = _checked(runs)[..., None] > np.asarray(taus, np.float64)
  return np.mean(above, axis=(-3, -2))


def interquartile_mean(runs: Any) -> np.ndarray:
  """Computes the mean of the middle half of all runs of all tasks.

  Of n = seeds x tasks runs, the floor(n / 4) lowest and the floor(n / 4)
  highest are excluded. Source: Agarwal et al. 2021, Sec. 4.3.

  Args:
    runs: float [..., seeds, tasks].

  Returns:
    float64 [...].
  """
  runs = _checked(runs)
  flat = runs.reshape(*runs.shape[:-2], -1)  # [..., n]
  return np.asarray(stats.trim_mean(flat, 0.25, axis=-1))


def probability_of_improvement(x_runs: Any, y_runs: Any) -> np.ndarray:
  """Computes the probability that X beats Y on a random task.

    mean over tasks of P(X > Y) + P(X = Y) / 2

  Source: Agarwal et al. 2021, Sec. 4.3 (the Mann-Whitney U statistic).

  Args:
    x_runs: float [..., seeds of X, tasks].
    y_runs: float [..., seeds of Y, tasks], of the same tasks.

  Returns:
    float64 [...], in [0, 1]; 0.5 if X and Y are equally good.

  Raises:
    ValueError: if the shapes are incompatible, or a run is NaN or infinite.
  """
  x_runs, y_runs = _checked(x_runs), _checked(y_runs)
  if x_runs.shape[-1] != y_runs.shape[-1]:
    raise ValueError(
      f'x_runs has {x_runs.shape[-1]} tasks, but y_runs has '
      f'{y_runs.shape[-1]}. Pass [seeds, tasks] of the same tasks in the same '
      'order.'
    )
  x = x_runs[..., :, None, :]  # [..., seeds of X, 1, tasks]
  y = y_runs[..., None, :, :]  # [..., 1, seeds of Y, tasks]
  axes = (-3, -2, -1)
  return (np.mean(x > y, axis=axes) + np.mean(x >= y, axis=axes)) / 2


def over_points(statistic: Statistic) -> Statistic:
  """Applies a statistic of runs to curves, point by point.

  For example, `over_points(interquartile_mean)` computes the IQM per point.

  Args:
    statistic: a function from arrays [..., seeds, tasks] to [...].

  Returns:
    A function from arrays [..., seeds, tasks, points] to [..., points].
  """

  def at_each_point(*curves: Any) -> np.ndarray:
    return statistic(*(np.moveaxis(np.asarray(c), -1, -3) for c in curves))

  return at_each_point


def bootstrap(
  statistic: Statistic,
  *samples: Any,
  seed: int = 0,
  confidence: float = 0.95,
  num_resamples: int = 2_000,
) -> Estimate:
  """Computes a statistic and its percentile-bootstrap interval.

  Seeds are drawn with replacement within each task, independently for each task
  and algorithm. The interval shows how much the statistic could change with
  other seeds of the same tasks (Agarwal et al. 2021, Sec. 4.1).

  Args:
    statistic: a function from arrays [..., seeds, tasks], one per sample, to
      [...] or several values [..., K]; for example `interquartile_mean` for one
      sample, or `probability_of_improvement` for two.
    *samples: float [seeds, tasks], one per algorithm; [seeds, tasks, points]
      for a statistic returned by `over_points`.
    seed: the seed of the draws.
    confidence: the share of the resampled statistics within the interval.
    num_resamples: the number of resamples.

  Returns:
    The statistic of `samples` and its interval, which is NaN if a sample has
    only one seed.

  Raises:
    ValueError: if a setting or a sample is out of range.
  """
  if not 0 < confidence < 1:
    raise ValueError(f'confidence={confidence} must be between 0 and 1.')
  if num_resamples < 1:
    raise ValueError(f'num_resamples={num_resamples} must be positive.')
  runs = [_checked(sample) for sample in samples]
  value = np.asarray(statistic(*runs))
  if min(map(len, runs)) < 2:
    low, high = np.full((2, *value.shape), np.nan)
  else:
    rng = np.random.default_rng(seed)
    draws = [
      rng.integers(len(sample), size=(num_resamples, *sample.shape[:2]))
      for sample in runs
    ]
    # Thousands of resamples of curves would not fit into memory at once.
    size = max(_CHUNK // max(sample.size for sample in runs), 1)
    chunks = []
    for first in range(0, num_resamples, size):
      resamples = (
        sample[seeds[first : first + size], np.arange(sample.shape[1])]
        for sample, seeds in zip(runs, draws, strict=True)
      )
      chunks.append(statistic(*resamples))
    resampled = np.concatenate(chunks)
    tail = (1 - confidence) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail], axis=0)
  return Estimate(*(x if np.ndim(x) else float(x) for x in (value, low, high)))


def _task_scores(runs: Any) -> np.ndarray:
  """Computes the mean over seeds: float64 [..., tasks]."""
  return np.mean(_checked(runs), axis=-2)


def _checked(runs: Any) -> np.ndarray:
  runs = np.asarray(runs, np.float64)
  if runs.ndim < 2 or 0 in runs.shape:
    raise ValueError(
      f'runs has shape {runs.shape}. Pass [seeds, tasks] with at least one of '
      'each; for a single task, pass runs[:, None].'
    )
  if not np.all(np.isfinite(runs)):
    raise ValueError(
      'runs contains NaN or infinity. Exclude unfinished runs from all tasks.'
    )
  return runs
