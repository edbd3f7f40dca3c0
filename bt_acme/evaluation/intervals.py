"""Compares algorithms over a few seeds of several tasks.

The estimates do not depend on single outliers, and their confidence intervals
tell how far another handful of seeds might have moved them. Source:
Agarwal et al. 2021, "Deep RL at the Edge of the Statistical Precipice",
arXiv:2108.13264.

Runs are arrays [..., seeds, tasks] with one score each, on a scale that the
tasks share, such as human-normalized scores in percent. Some statistics take
the score of a task to be its mean over seeds, as the tables of Campos et al.
2021 do; the others count each run. `over_points` applies any of them to curves.
All raise ValueError for runs of another shape, and for NaN and infinity.
"""

from typing import Any, Callable, NamedTuple, Sequence, Tuple

import numpy as np
from scipy import stats

# What a bootstrap draws with replacement.
SEEDS, TASKS = 'seeds', 'tasks'

PERCENTILES = (5, 10, 20, 40, 50)  # Those in the table of Campos et al. 2021.

_CHUNK = 2**22  # Scores that a statistic is given at a time.

Statistic = Callable[..., np.ndarray]


class Estimate(NamedTuple):
  """A statistic of runs, with its confidence interval.

  Each field is a float, or float64 [...] for a statistic of several values.
  `low` and `high` are NaN where the runs tell nothing about the interval.
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
  """Computes the mean over tasks of min(mean over seeds, cap), with no floor.

  Args:
    runs: float [..., seeds, tasks].
    cap: the most that a task may count, in the unit of the runs.

  Returns:
    float64 [...].
  """
  return np.mean(np.minimum(_task_scores(runs), cap), axis=-1)


def percentiles(
  runs: Any, percents: Sequence[float] = PERCENTILES
) -> np.ndarray:
  """Computes percentiles over tasks of the mean over seeds.

  They interpolate linearly, as those of Campos et al. 2021 do.

  Args:
    runs: float [..., seeds, tasks].
    percents: [K], each in [0, 100].

  Returns:
    float64 [..., K].

  Raises:
    ValueError: if a percent is out of range.
  """
  found = np.percentile(_task_scores(runs), percents, axis=-1)  # [K, ...]
  return np.moveaxis(found, 0, -1)


def num_above(runs: Any, level: float) -> np.ndarray:
  """Computes how many tasks have a mean over seeds above a level.

  Args:
    runs: float [..., seeds, tasks].
    level: in the unit of the runs.

  Returns:
    float64 [...].
  """
  above = _task_scores(runs) > level
  return np.sum(above, axis=-1).astype(np.float64)


def optimality_gap(runs: Any, target: float = 100.0) -> np.ndarray:
  """Computes by how much runs fail to reach a target, on average.

    target - mean over runs of min(run, target)

  What a run has beyond the target does not count. Source: Agarwal et al. 2021,
  Sec. 4.3.

  Args:
    runs: float [..., seeds, tasks].
    target: the desired score, in the unit of the runs.

  Returns:
    float64 [...]; 0 where all runs reach the target.
  """
  return target - np.mean(np.minimum(_checked(runs), target), axis=(-2, -1))


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
  """Computes the mean of the middle half of all runs, whatever their task.

  Of n = seeds x tasks runs, the floor(n / 4) lowest and equally many of the
  highest are left out. Source: Agarwal et al. 2021, Sec. 4.3.

  Args:
    runs: float [..., seeds, tasks].

  Returns:
    float64 [...].
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


def over_points(statistic: Statistic) -> Statistic:
  """Makes a statistic of runs a statistic of curves, point by point.

  For example `over_points(interquartile_mean)` is the IQM against frames.

  Args:
    statistic: maps arrays [..., seeds, tasks] to [...].

  Returns:
    A function that maps arrays [..., seeds, tasks, points] to [..., points].
  """

  def at_each_point(*curves: Any) -> np.ndarray:
    return statistic(*(np.moveaxis(np.asarray(c), -1, -3) for c in curves))

  return at_each_point


def bootstrap(
  statistic: Statistic,
  *samples: Any,
  strata: str = SEEDS,
  seed: int = 0,
  confidence: float = 0.95,
  num_resamples: int = 2_000,
) -> Estimate:
  """Computes a statistic and its percentile-bootstrap interval.

  With `SEEDS`, seeds are drawn with replacement within each task, independently
  of other tasks and of other algorithms, and tasks are not drawn: the interval
  tells how far other seeds of the same tasks might have moved the statistic
  (Agarwal et al. 2021, Sec. 4.1). With `TASKS`, tasks are drawn with all their
  seeds, the same tasks for all algorithms: it tells how far other tasks might
  have. Differs from Agarwal et al. 2021, whose bootstrap over tasks also draws
  the seeds of each task, so that the noise of seeds counts twice.

  Args:
    statistic: maps arrays [..., seeds, tasks], one for each sample, to [...] or
      to several values [..., K]; for example `interquartile_mean` of one
      sample, or `probability_of_improvement` of two.
    *samples: float [seeds, tasks], one for each algorithm; [seeds, tasks,
      points] for a statistic made by `over_points`.
    strata: `SEEDS` or `TASKS`.
    seed: the seed of the draws; the same seed gives the same interval.
    confidence: the share of the resampled statistics within the interval.
    num_resamples: the number of times that the runs are drawn again.

  Returns:
    The statistic of `samples` and its interval, which is NaN if a sample has
    only one seed (one task, with `TASKS`).

  Raises:
    ValueError: if a setting or a sample is out of range.
  """
  if strata not in (SEEDS, TASKS):
    raise ValueError(f'strata={strata!r} must be {SEEDS!r} or {TASKS!r}.')
  if not 0 < confidence < 1:
    raise ValueError(f'confidence={confidence} must lie between 0 and 1.')
  if num_resamples < 1:
    raise ValueError(f'num_resamples={num_resamples} must be positive.')
  runs = [_resamplable(sample) for sample in samples]
  value = np.asarray(statistic(*runs))
  if min(sample.shape[strata == TASKS] for sample in runs) < 2:
    low, high = np.full((2, *value.shape), np.nan)
  else:
    rng = np.random.default_rng(seed)
    draw = _draw_seeds if strata == SEEDS else _draw_tasks
    resampled = _resampled(statistic, runs, draw(rng, runs, num_resamples))
    tail = (1 - confidence) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail], axis=0)
  return Estimate(*(x if np.ndim(x) else float(x) for x in (value, low, high)))


Draws = Tuple[np.ndarray, np.ndarray]  # Seeds and tasks, [resamples, S, T].


def _draw_seeds(
  rng: np.random.Generator, runs: Sequence[np.ndarray], num_resamples: int
) -> Sequence[Draws]:
  """Draws seeds within each task, for each sample."""
  draws = []
  for sample in runs:
    shape = (num_resamples, *sample.shape[:2])
    tasks = np.broadcast_to(np.arange(shape[-1]), shape)
    draws.append((rng.integers(shape[1], size=shape), tasks))
  return draws


def _draw_tasks(
  rng: np.random.Generator, runs: Sequence[np.ndarray], num_resamples: int
) -> Sequence[Draws]:
  """Draws tasks, which are the same for all samples."""
  counts = {sample.shape[1] for sample in runs}
  if len(counts) > 1:
    raise ValueError(
      f'the samples have {sorted(counts)} tasks: to draw tasks, pass [seeds, '
      'tasks] of the same tasks in the same order.'
    )
  (num_tasks,) = counts
  drawn = rng.integers(num_tasks, size=(num_resamples, 1, num_tasks))
  draws = []
  for sample in runs:
    shape = (num_resamples, *sample.shape[:2])
    seeds = np.broadcast_to(np.arange(shape[1])[:, None], shape)
    draws.append((seeds, np.broadcast_to(drawn, shape)))
  return draws


def _resampled(
  statistic: Statistic, runs: Sequence[np.ndarray], draws: Sequence[Draws]
) -> np.ndarray:
  """Computes the statistic of each resample: float64 [resamples, ...].

  Curves of many tasks would not fit into memory at once, thousands of times.
  """
  num_resamples = len(draws[0][0])
  rows = max(_CHUNK // max(sample.size for sample in runs), 1)
  return np.concatenate(
    [
      statistic(
        *(
          sample[seeds[first : first + rows], tasks[first : first + rows]]
          for sample, (seeds, tasks) in zip(runs, draws, strict=True)
        )
      )
      for first in range(0, num_resamples, rows)
    ]
  )


def _resamplable(sample: Any) -> np.ndarray:
  sample = _checked(sample)
  if sample.ndim > 3:
    raise ValueError(
      f'a sample of shape {sample.shape} cannot be resampled: pass [seeds, '
      'tasks], or [seeds, tasks, points] for curves.'
    )
  return sample


def _task_scores(runs: Any) -> np.ndarray:
  """Computes the mean over seeds: float64 [..., tasks]."""
  return np.mean(_checked(runs), axis=-2)


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
