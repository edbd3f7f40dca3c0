"""Looks up results by arm and environment and reports missing data."""

import collections
import math
from typing import Any, Callable, Iterable, NamedTuple, Sequence

import numpy as np

from bt_acme.evaluation import tables
from experiments.harness import dataset as dataset_lib
from experiments.harness import diagnosis
from experiments.paper import artifacts, normalized_scores

# Maximum distance between an evaluation and the requested step, as a share of
# the budget.
NEAR = 0.025
# Shares of the budget that count as early. The first is the paper's 100M of 5B
# frames. The second applies to runs with fewer than three evaluations in it.
EARLY = (0.02, 0.1)

# Returns a number for a run, such as its final return; None if it is missing.
Reading = Callable[['Results', dataset_lib.RunRow], float | None]


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
  runs: tuple[dataset_lib.RunRow, ...]
  problems: tuple[diagnosis.Problem, ...]
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
    self._runs = collections.defaultdict[Any, list[dataset_lib.RunRow]](list)
    for run in sorted(dataset.runs, key=lambda run: run.budget_steps):
      self._runs[run.stage, run.arm, run.env].append(run)
    self._scores = collections.defaultdict[Any, list[dataset_lib.Score]](list)
    for score in sorted(dataset.scores, key=lambda score: score.actor_steps):
      self._scores[score.run_id, score.source].append(score)

  def scores(
    self, run: dataset_lib.RunRow, source: str
  ) -> list[dataset_lib.Score]:
    """Returns the scores of a run from one source, sorted by actor steps."""
    return self._scores.get((run.run_id, source), [])

  def runs_of(
    self, arm: str, env: str, pretraining_steps: int | None = None
  ) -> list[dataset_lib.RunRow]:
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

  def _found(self, arm: str, env: str) -> list[dataset_lib.RunRow]:
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
    read = {
      run: reading(self, run)
      for env in envs
      for run in self.runs_of(arm, env, pretraining_steps)
    }
    found = {run: value for run, value in read.items() if value is not None}
    missing = [
      diagnosis.of_run(run, 'No evaluation near the required step')
      for run in read
      if run not in found
    ]
    runs, few = balanced(arm, found)
    return combined(
      runs,
      np.array([found[run] for run in runs]),
      [*not_run(arm, envs, read), *missing, *few],
    )


def balanced(
  arm: str, runs: Iterable[dataset_lib.RunRow]
) -> tuple[list[dataset_lib.RunRow], list[diagnosis.Problem]]:
  """Selects equally many runs of an arm for each environment.

  Returns:
    The runs by environment, and the environments that limit their number.
  """
  by_env = collections.defaultdict[str, list[dataset_lib.RunRow]](list)
  for run in runs:
    by_env[run.env].append(run)
  counts = {env: len(found) for env, found in by_env.items()}
  seeds = min(counts.values(), default=0)
  what = (
    f'{arm} uses only {tables.counted(seeds, "seed")} of each environment, '
    'because there are no more on'
  )
  problems = [
    diagnosis.Problem(what, env)
    for env, count in counts.items()
    if count == seeds < max(counts.values())
  ]
  return [run for found in by_env.values() for run in found[:seeds]], problems


def not_run(
  arm: str, envs: Iterable[str], runs: Iterable[dataset_lib.RunRow]
) -> list[diagnosis.Problem]:
  """Reports the environments in which an arm has no runs."""
  some = {run.env for run in runs}
  what = f'{arm} was not run on'
  return [diagnosis.Problem(what, env) for env in envs if env not in some]


def combined(
  runs: Sequence[dataset_lib.RunRow],
  values: np.ndarray,
  problems: Iterable[diagnosis.Problem],
  frames: np.ndarray = _NO_FRAMES,
) -> ArmResults:
  """Combines balanced runs with their values [runs] or [runs, N]."""
  envs = tuple(dict.fromkeys(run.env for run in runs))
  seeds = len(runs) // max(len(envs), 1)
  values = values.reshape(len(envs), seeds, *values.shape[1:])
  return ArmResults(
    values.swapaxes(0, 1), envs, tuple(runs), tuple(problems), frames
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

  def read(results: Results, run: dataset_lib.RunRow) -> float | None:
    if math.isnan(share):
      value = early_area(results, run)
    else:
      value = _return_at(share, results, run)
    if value is None or not is_normalized:
      return value
    return float(normalized_scores.normalize(run.env, value))

  return read


def _return_at(
  share: float, results: Results, run: dataset_lib.RunRow
) -> float | None:
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


def early_area(results: Results, run: dataset_lib.RunRow) -> float | None:
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


def peak_over_rest(results: Results, run: dataset_lib.RunRow) -> float | None:
  """Returns how much the use of the extra action peaks in the first third.

  This is the maximum greedy share of the extra action in the first third of a
  run minus the maximum in the rest.
  """
  first, rest = _thirds(results, run)
  return float(first.max() - rest.max()) if len(first) and len(rest) else None


def peak_over_end(results: Results, run: dataset_lib.RunRow) -> float | None:
  """Returns the peak in the first third minus the share at the end of a run."""
  first, rest = _thirds(results, run)
  return float(first.max() - rest[-1]) if len(first) and len(rest) else None


def _thirds(
  results: Results, run: dataset_lib.RunRow
) -> tuple[np.ndarray, np.ndarray]:
  """Returns greedy shares of the extra action in and after the first third."""
  steps, shares = column_of(results, run, 'greedy_extra_share')
  first = steps <= run.budget_steps / 3
  return shares[first], shares[~first]


def column_of(
  results: Results, run: dataset_lib.RunRow, name: str
) -> tuple[np.ndarray, np.ndarray]:
  """Returns actor steps and values of a column of evaluations, without NaN."""
  scores = results.scores(run, dataset_lib.EVALUATOR)
  steps = np.array([score.actor_steps for score in scores], np.float64)
  values = np.array([getattr(score, name) for score in scores], np.float64)
  exists = ~np.isnan(values)
  return steps[exists], values[exists]
