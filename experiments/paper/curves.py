"""Combines runs into the lines of figures.

Over frames of training, a line follows the evaluations of several runs, which
take place at roughly the same steps; differing steps are interpolated. Over
frames of pre-training, each point shows the final results of different runs.
"""

from typing import Any, Callable, Sequence

import numpy as np

from bt_acme.evaluation import plots
from experiments.harness import dataset as dataset_lib
from experiments.harness import diagnosis
from experiments.paper import normalized_scores
from experiments.paper import results as lookup

# A figure shows at least this many evaluations, however short its window is.
_FEWEST = 3


def read(
  results: lookup.Results,
  arm: str,
  envs: Sequence[str],
  *,
  is_normalized: bool,
  column: str = 'return_mean',
  window: float = 1.0,
) -> lookup.ArmResults:
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
    steps, values = lookup.column_of(results, run, column)
    if is_normalized:
      values = normalized_scores.normalize(run.env, values)
    steps, values = plots.means_by_step((steps, values))
    points[run] = steps * run.frames_per_step, values
  some = [run for run, (frames, _) in points.items() if len(frames)]
  used = [run for run in some if run.status == dataset_lib.DONE] or some
  counted, few = lookup.balanced(arm, used)
  problems = lookup.not_run(arm, envs, points)
  for run in points:
    problems += _incomplete(run, is_used=run in used)
  problems += few
  frames, values = _aligned([points[run] for run in counted])
  if counted and not len(frames):
    problems.append(diagnosis.Problem('No common steps in the runs of', arm))
  budget = max((r.budget_steps * r.frames_per_step for r in counted), default=0)
  within = int(np.searchsorted(frames, window * budget, side='right'))
  shown = max(within, _FEWEST)
  return lookup.combined(counted, values[:, :shown], problems, frames[:shown])


def _incomplete(
  run: dataset_lib.RunRow, *, is_used: bool
) -> list[diagnosis.Problem]:
  """Reports a run that is excluded or only partly included."""
  if not is_used:
    return [diagnosis.of_run(run, 'No evaluations')]
  if run.status == dataset_lib.DONE:
    return []
  what = f'Shown up to the latest evaluation ({run.status})'
  return [diagnosis.Problem(what, run.run_id)]


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


def read_by_pretraining(
  results: lookup.Results, arm: str, envs: Sequence[str], *, is_normalized: bool
) -> lookup.ArmResults:
  """Reads the final results of an arm's runs by frames of pre-training.

  An environment counts only if it has runs with every budget that occurs.

  Args:
    results: the results.
    arm: the arm.
    envs: the environments.
    is_normalized: whether to normalize the returns.
  """
  reading = lookup.at(1.0, is_normalized)
  every = in_shared_environments(
    lambda steps, envs: results.sample(arm, envs, reading, steps),
    results.budgets(arm, envs),
    envs,
  )
  problems = tuple(
    problem for one in every.values() for problem in one.problems
  )
  samples = {steps: one for steps, one in every.items() if one.envs}
  if not samples:
    return lookup.ArmResults(np.zeros((0, 0, 0)), (), (), problems)
  first, *_ = samples.values()
  seeds = min(one.seeds for one in samples.values())
  return lookup.ArmResults(
    np.stack([one.values[:seeds] for one in samples.values()], axis=-1),
    first.envs,
    tuple(run for one in samples.values() for run in one.runs),
    problems,
    np.array(list(samples), np.float64) * first.runs[0].frames_per_step,
  )


def in_shared_environments(
  read: Callable[[Any, Sequence[str]], lookup.ArmResults],
  keys: Sequence[Any],
  envs: Sequence[str],
  excluded: str = '',
) -> dict[Any, lookup.ArmResults]:
  """Reads several samples in the same environments, as required for medians.

  An environment counts if all samples have it; samples without any environment
  are ignored.

  Args:
    read: reads a sample, given by its key, in the given environments.
    keys: the keys, such as arms.
    envs: the environments.
    excluded: the description of an environment that is excluded; empty to not
      report it.

  Returns:
    The samples by key.
  """
  every = {key: read(key, envs) for key in keys}
  some = [one.envs for one in every.values() if one.envs]
  shared = [env for env in envs if all(env in one for one in some)]
  for key, one in every.items():
    left_out = [env for env in one.envs if env not in shared]
    problems = [
      diagnosis.Problem(excluded, env) for env in left_out if excluded
    ]
    if left_out:
      every[key] = read(key, shared)._replace(
        problems=(*one.problems, *problems)
      )
  return every
