"""Looks up results by arm and environment and reports missing data.

The results are single numbers of runs, or the lines of figures. Over frames of
training, a line follows the evaluations of several runs, which take place at
roughly the same steps; differing steps are interpolated. Over frames of
pre-training, each point shows the final results of different runs.
"""

import collections
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bt_acme.evaluation import plots, tables
from experiments.harness import dataset as dataset_lib
from experiments.harness.dataset import Problem, RunRow
from experiments.paper import artifacts, normalized_scores

# Maximum distance between an evaluation and the requested step, as a share of
# the budget.
NEAR = 0.025
# Shares of the budget that count as early. The first is the paper's 100M of 5B
# frames. The second applies to runs with fewer than three evaluations in it.
EARLY = (0.02, 0.1)
# A figure shows at least this many evaluations, however short its window is.
_FEWEST = 3

# Returns a number for a run, such as its final return; None if it is missing.
Reading = Callable[['Results', RunRow], float | None]


_NO_FRAMES = np.zeros(0)


class ArmResults(NamedTuple):
  """The results of one arm in the environments of a suite.

  Attributes:
    values: float64 [seeds, envs], or [seeds, envs, N] for curves; the number of
      seeds that all environments have.
    envs: the environments that have values.
    runs: the runs behind the values.
    problems: the missing data.
    frames: for curves, frames of training or of pre-training, float64 [N],
      ascending.
  """

  values: np.ndarray
  envs: tuple[str, ...]
  runs: tuple[RunRow, ...]
  problems: tuple[Problem, ...]
  frames: np.ndarray = _NO_FRAMES

  @property
  def seeds(self) -> int:
    return self.values.shape[0] if self.envs else 0


class Results:
  """An index of a dataset.

  Attributes:
    dataset: the dataset.
    suites: the environments of each suite at the dataset's scale.
  """

  def __init__(
    self,
    dataset: dataset_lib.Dataset,
    suites: artifacts.Suites = artifacts.PAPER_SUITES,
    zero_shot: str = 'zero_shot',
  ):
    """Initializes the index.

    Args:
      dataset: the dataset.
      suites: the environments of each suite at the dataset's scale.
      zero_shot: the stage of the runs of arms that do not learn the task.
    """
    self.dataset = dataset
    self.suites = suites
    self._zero_shot = zero_shot
    self._runs = collections.defaultdict[Any, list[RunRow]](list)
    for run in sorted(dataset.runs, key=lambda run: run.budget_steps):
      self._runs[run.stage, run.arm, run.env].append(run)
    self._scores = collections.defaultdict[Any, list[dataset_lib.Score]](list)
    for score in sorted(dataset.scores, key=lambda score: score.actor_steps):
      self._scores[score.run_id, score.source].append(score)

  def scores(self, run: RunRow, source: str) -> list[dataset_lib.Score]:
    """Returns the scores of a run from one source, sorted by actor steps."""
    return self._scores.get((run.run_id, source), [])

  def runs_of(
    self, arm: str, env: str, pretraining_steps: int | None = None
  ) -> list[RunRow]:
    """Returns one run per seed, sorted by seed, each with the largest budget.

    Args:
      arm: the arm.
      env: the environment.
      pretraining_steps: actor steps of the behavior's pre-training. Defaults to
        the maximum, because only one figure shows other budgets.
    """
    if pretraining_steps is None:
      pretraining_steps = max(self.budgets(arm, [env]), default=0)
    by_seed = {
      run.seed: run
      for run in self._found(arm, env)
      if run.pretraining_steps == pretraining_steps
    }
    return [by_seed[seed] for seed in sorted(by_seed)]

  def budgets(self, arm: str, envs: Sequence[str]) -> list[int]:
    """Returns the pre-training steps of an arm's runs in ascending order."""
    found = (run for env in envs for run in self._found(arm, env))
    return sorted({run.pretraining_steps for run in found})

  def _found(self, arm: str, env: str) -> list[RunRow]:
    stage = self._zero_shot if arm in artifacts.ZERO_SHOT else 'transfer'
    return self._runs.get((stage, arm, env), [])

  def sample(
    self,
    arm: str,
    envs: Sequence[str],
    reading: Reading,
    pretraining_steps: int | None = None,
  ) -> ArmResults:
    """Reads an arm's runs in several environments.

    Args:
      arm: the arm.
      envs: the environments.
      reading: returns the number that is needed of each run.
      pretraining_steps: as in `runs_of`.
    """
    found = {
      run: reading(self, run)
      for env in envs
      for run in self.runs_of(arm, env, pretraining_steps)
    }
    return combined(arm, envs, found, lambda x: (_NO_FRAMES, np.array(x)))


def combined(
  arm: str,
  envs: Iterable[str],
  found: Mapping[RunRow, Any],
  stack: Callable[[list[Any]], tuple[np.ndarray, np.ndarray]],
) -> ArmResults:
  """Combines what was read of an arm's runs, equally many per environment.

  Args:
    arm: the arm.
    envs: the environments.
    found: what was read of each run; None if it is missing.
    stack: returns the frames and the values [runs] or [runs, N] of runs.
  """
  some = {run.env for run in found}
  problems = [(f'{arm} was not run on', env) for env in envs if env not in some]
  problems += [
    dataset_lib.problem_of(run, 'No evaluation near the required step')
    for run, one in found.items()
    if one is None
  ]
  by_env = collections.defaultdict[str, list[RunRow]](list)
  for run, one in found.items():
    if one is not None:
      by_env[run.env].append(run)
  counts = [len(usable) for usable in by_env.values()]
  seeds = min(counts, default=0)
  what = (
    f'{arm} uses only {tables.counted(seeds, "seed")} of each environment, '
    'because there are no more on'
  )
  problems += [
    (what, env)
    for env, usable in by_env.items()
    if len(usable) == seeds < max(counts)
  ]
  runs = tuple(run for usable in by_env.values() for run in usable[:seeds])
  frames, values = stack([found[run] for run in runs])
  values = values.reshape(len(by_env), seeds, *values.shape[1:])
  return ArmResults(
    values.swapaxes(0, 1), tuple(by_env), runs, tuple(problems), frames
  )


def no_environments(suite: str) -> Problem:
  """Describes that a scale has no environments for a suite."""
  return 'The scale has no environments for', suite


def in_shared_environments(
  read: Callable[[Any, Sequence[str]], ArmResults],
  keys: Sequence[Any],
  envs: Sequence[str],
) -> dict[Any, ArmResults]:
  """Reads several samples in the same environments, as required for medians.

  An environment counts if all samples have it; samples without any environment
  are ignored.

  Args:
    read: reads a sample, given by its key, in the given environments.
    keys: the keys, such as arms.
    envs: the environments.

  Returns:
    The samples by key.
  """
  every = {key: read(key, envs) for key in keys}
  some = [one.envs for one in every.values() if one.envs]
  shared = [env for env in envs if all(env in one for one in some)]
  return {
    key: read(key, shared)._replace(problems=one.problems)
    for key, one in every.items()
  }


def curve(
  results: Results,
  arm: str,
  envs: Sequence[str],
  *,
  is_normalized: bool,
  column: str = 'return_mean',
  window: float = 1.0,
) -> ArmResults:
  """Reads the evaluations of an arm's runs in several environments.

  Only finished runs count. If no run is finished in any of the environments,
  the evaluations of running and failed runs count instead. The number of seeds
  is the same in all environments, and curves end at the last frame that all
  runs have reached.

  Args:
    results: the results.
    arm: the arm.
    envs: the environments.
    is_normalized: whether to normalize the values.
    column: the column of scores to read; NaN is ignored.
    window: the share of the budget to show; extended if it contains fewer than
      three evaluations.
  """
  points = {}
  for run in (run for env in envs for run in results.runs_of(arm, env)):
    steps, values = column_of(results, run, column)
    if is_normalized:
      values = normalized_scores.normalize(run.env, values)
    steps, values = plots.means_by_step((steps, values))
    points[run] = steps * run.frames_per_step, values
  some = [run for run, (frames, _) in points.items() if len(frames)]
  done = [run for run in some if run.status == dataset_lib.DONE]
  usable = set(done or some)
  found = {run: one if run in usable else None for run, one in points.items()}
  every = combined(arm, envs, found, _aligned)
  budgets = (run.budget_steps * run.frames_per_step for run in every.runs)
  end = window * max(budgets, default=0)
  shown = max(int(np.searchsorted(every.frames, end, side='right')), _FEWEST)
  return every._replace(
    values=every.values[..., :shown],
    problems=every.problems
    + tuple(dataset_lib.problem_of(run, '') for run in some if not done),
    frames=every.frames[:shown],
  )


def _aligned(curves: Sequence[plots.Curve]) -> plots.Curve:
  """Interpolates all curves at the frames of the curve with the fewest points.

  Args:
    curves: the curves, each with at least one point.

  Returns:
    Frames [N] within the range of all curves, and values [curves, N].
  """
  if not curves:
    return np.zeros(0), np.zeros((0, 0))
  start = max(frames[0] for frames, _ in curves)
  end = min(frames[-1] for frames, _ in curves)
  within = [f[(f >= start) & (f <= end)] for f, _ in curves]
  shared = min(filter(len, within), key=len, default=np.zeros(0))
  return shared, np.stack([np.interp(shared, *curve) for curve in curves])


def by_pretraining(
  results: Results, arm: str, envs: Sequence[str], *, is_normalized: bool
) -> ArmResults:
  """Reads the final results of an arm's runs by frames of pre-training.

  An environment counts only if it has runs with every budget that occurs.

  Args:
    results: the results.
    arm: the arm.
    envs: the environments.
    is_normalized: whether to normalize the returns.
  """
  reading = at(1.0, is_normalized)
  every = in_shared_environments(
    lambda steps, envs: results.sample(arm, envs, reading, steps),
    results.budgets(arm, envs),
    envs,
  )
  problems = tuple(p for one in every.values() for p in one.problems)
  samples = {steps: one for steps, one in every.items() if one.envs}
  if not samples:
    return ArmResults(np.zeros((0, 0, 0)), (), (), problems)
  first, *_ = samples.values()
  seeds = min(one.seeds for one in samples.values())
  return ArmResults(
    np.stack([one.values[:seeds] for one in samples.values()], axis=-1),
    first.envs,
    tuple(
      run
      for one in samples.values()
      for i, run in enumerate(one.runs)
      if i % one.seeds < seeds
    ),
    problems,
    np.array(list(samples), np.float64) * first.runs[0].frames_per_step,
  )


def at(share: float, is_normalized: bool = False) -> Reading:
  """Returns a function that reads the return at a share of the budget.

  For the full budget, the function reads the evaluation after training. If
  there is none, and for other shares, the function reads the nearest evaluation
  during training.

  Args:
    share: the share; NaN for the mean over the early part of training.
    is_normalized: whether to normalize the return.
  """

  def read(results: Results, run: RunRow) -> float | None:
    if math.isnan(share):
      value = early_area(results, run)
    else:
      value = _return_at(share, results, run)
    if value is None or not is_normalized:
      return value
    return float(normalized_scores.normalize(run.env, value))

  return read


def _return_at(share: float, results: Results, run: RunRow) -> float | None:
  after = results.scores(run, dataset_lib.FINAL)
  if share == 1 and after:
    return after[-1].return_mean
  steps = share * run.budget_steps
  near = min(
    results.scores(run, dataset_lib.EVALUATOR),
    key=lambda score: abs(score.actor_steps - steps),
    default=None,
  )
  if near is None or abs(near.actor_steps - steps) > NEAR * run.budget_steps:
    return None
  return near.return_mean


def early_area(results: Results, run: RunRow) -> float | None:
  """Returns the mean return over the early part of training.

  The mean is the area under the curve, linearly interpolated between
  evaluations, divided by the width. Returns None unless the first evaluation is
  in the first half of that part and the last one is not before its end.
  """
  steps, returns = column_of(results, run, 'return_mean')
  fine, coarse = (share * run.budget_steps for share in EARLY)
  end = fine if np.sum(steps <= fine) >= 3 else coarse
  if not len(steps) or steps[0] > end / 2 or steps[-1] < end:
    return None
  x = np.unique(np.concatenate([[0.0, end], steps[steps < end]]))
  y = np.interp(x, steps, returns)
  return float(np.sum(np.diff(x) * (y[1:] + y[:-1]) / 2) / end)


def first_third_over(other: int, results: Results, run: RunRow) -> float | None:
  """Returns how much more the extra action is used in the first third.

  Means are compared, because a maximum grows with the number of evaluations.

  Args:
    other: the third of the run to compare, 1 or 2.
    results: the results.
    run: the run.

  Returns:
    The mean greedy share of the extra action in the first third of the run,
    without the evaluation before training, minus that in the other third; None
    if one of them or the end is missing.
  """
  steps, shares = column_of(results, run, 'greedy_extra_share')
  # The last evaluation may follow the end of the budget by some steps.
  thirds = np.minimum(np.ceil(3 * steps / run.budget_steps), 3) - 1
  first, rest = shares[thirds == 0], shares[thirds == other]
  has_end = len(steps) and steps[-1] >= (1 - NEAR) * run.budget_steps
  has_all = len(first) and len(rest) and has_end
  return float(first.mean() - rest.mean()) if has_all else None


def column_of(
  results: Results, run: RunRow, name: str
) -> tuple[np.ndarray, np.ndarray]:
  """Returns actor steps and values of a column of evaluations, without NaN."""
  scores = results.scores(run, dataset_lib.EVALUATOR)
  steps = np.array([score.actor_steps for score in scores], np.float64)
  values = np.array([getattr(score, name) for score in scores], np.float64)
  exists = ~np.isnan(values)
  return steps[exists], values[exists]
