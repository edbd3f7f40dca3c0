"""Compares algorithms over a few seeds of several tasks.

The estimates do not depend on single outliers, and their confidence intervals
tell how far another handful of seeds might have moved them. Source:
Agarwal et al. 2021, "Deep RL at the Edge of the Statistical Precipice",
arXiv:2108.13264.

Runs are arrays [..., seeds, tasks] with one score each, on a scale that the
tasks share, such as human-normalized scores.
"""

from typing import Any, Callable, NamedTuple

import numpy as np
from scipy import stats


class Estimate(NamedTuple):
  """A statistic of runs, with its confidence interval."""

  value: float
  low: float
  high: float


def interquartile_mean(runs: Any) -> np.ndarray:
  """Computes the mean of the middle half of all runs, whatever their task.

  Of n = seeds x tasks runs, the floor(n / 4) lowest and equally many of the
  highest are left out. Source: Agarwal et al. 2021, Sec. 4.3.

  Args:
    runs: float [..., seeds, tasks].

  Returns:
    float64 [...].

  Raises:
    ValueError: if `runs` has no such shape, or holds NaN or infinity.
  """
  runs = _checked(runs)
  flat = runs.reshape(*runs.shape[:-2], -1)  # [..., n]
  return np.asarray(stats.trim_mean(flat, 0.25, axis=-1))


def probability_of_improvement(x_runs: Any, y_runs: Any) -> np.ndarray:
  """Computes how likely a run of X beats a run of Y on a random task.

    mean over tasks of P(X > Y) + P(X = Y) / 2

  Source: Agarwal et al. 2021, Sec. 4.3 (the Mann-Whitney U statistic).

  Args:
    x_runs: float [..., seeds of X, tasks].
    y_runs: float [..., seeds of Y, tasks], of the same tasks.

  Returns:
    float64 [...], in [0, 1]; 0.5 where the two are alike.

  Raises:
    ValueError: if the shapes do not fit, or a run is NaN or infinite.
  """
  x_runs, y_runs = _checked(x_runs), _checked(y_runs)
  if x_runs.shape[-1] != y_runs.shape[-1]:
    raise ValueError(
      f'x_runs has {x_runs.shape[-1]} tasks and y_runs {y_runs.shape[-1]}: '
      'pass [seeds, tasks] of the same tasks in the same order.'
    )
  x = x_runs[..., :, None, :]  # [..., seeds of X, 1, tasks]
  y = y_runs[..., None, :, :]  # [..., 1, seeds of Y, tasks]
  axes = (-3, -2, -1)
  return (np.mean(x > y, axis=axes) + np.mean(x >= y, axis=axes)) / 2


def bootstrap(
  statistic: Callable[..., np.ndarray],
  *samples: Any,
  seed: int = 0,
  confidence: float = 0.95,
  num_resamples: int = 2_000,
) -> Estimate:
  """Computes a statistic and its stratified percentile-bootstrap interval.

  Seeds are drawn with replacement within each task, independently of other
  tasks and of other algorithms. Tasks are not drawn. Source: Agarwal et al.
  2021, Sec. 4.1.

  Args:
    statistic: maps arrays [..., seeds, tasks], one for each sample, to [...];
      for example `interquartile_mean` of one sample, or
      `probability_of_improvement` of two.
    *samples: float [seeds, tasks], one for each algorithm, with at least two
      seeds.
    seed: the seed of the draws; the same seed gives the same interval.
    confidence: the share of the resampled statistics within the interval.
    num_resamples: the number of times that the runs are drawn again.

  Returns:
    The statistic of `samples` and its interval.

  Raises:
    ValueError: if a setting or a sample is out of range.
  """
  if not 0 < confidence < 1:
    raise ValueError(f'confidence={confidence} must lie between 0 and 1.')
  if num_resamples < 1:
    raise ValueError(f'num_resamples={num_resamples} must be positive.')
  runs = [_resamplable(sample) for sample in samples]
  rng = np.random.default_rng(seed)
  resampled = [_resample(rng, sample, num_resamples) for sample in runs]
  tail = (1 - confidence) / 2
  low, high = np.quantile(statistic(*resampled), [tail, 1 - tail])
  return Estimate(float(statistic(*runs)), float(low), float(high))


def _resamplable(sample: Any) -> np.ndarray:
  sample = _checked(sample)
  if sample.ndim != 2 or sample.shape[0] < 2:
    raise ValueError(
      f'a sample of shape {sample.shape} cannot be resampled over seeds: '
      'pass [seeds, tasks] with at least 2 seeds.'
    )
  return sample


def _resample(
  rng: np.random.Generator, runs: np.ndarray, num_resamples: int
) -> np.ndarray:
  """Draws seeds within each task: float64 [num_resamples, seeds, tasks]."""
  num_seeds, num_tasks = runs.shape
  seeds = rng.integers(num_seeds, size=(num_resamples, num_seeds, num_tasks))
  return runs[seeds, np.arange(num_tasks)]


def _checked(runs: Any) -> np.ndarray:
  runs = np.asarray(runs, np.float64)
  if runs.ndim < 2 or 0 in runs.shape:
    raise ValueError(
      f'runs of shape {runs.shape} must be [seeds, tasks] with at least one of '
      'each; for a single task pass runs[:, None].'
    )
  if not np.all(np.isfinite(runs)):
    raise ValueError(
      'runs hold NaN or infinity: leave unfinished runs out of all tasks.'
    )
  return runs
