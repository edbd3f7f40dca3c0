"""What the lines of figures are made of: several runs at the same frames.

Against frames of training, a line goes through the evaluations of runs, which
take place at about the same steps; where steps differ, it interpolates. Against
frames of pre-training, each point is what other runs have come to in the end.
"""

import collections
from typing import Callable, Dict, List, NamedTuple, Sequence, Set, Tuple

import numpy as np

from bt_acme.evaluation import intervals, panels, plots
from experiments.harness import dataset as dataset_lib
from experiments.paper.results import Problem, Reading, Results, failure

# What is read of an evaluation of a run.
Value = Callable[[dataset_lib.Run, dataset_lib.Score], float]

# The first evaluations that a figure shows, however short its window is.
_FEWEST = 3


class Curves(NamedTuple):
  """One arm on some worlds, or on one.

  Attributes:
    frames: of training or of pre-training, float64 [N], ascending.
    values: float64 [seeds, worlds, N].
    envs: the worlds; those without any evaluation are left out.
    runs: those that were read.
    problems: what is missing.
  """

  frames: np.ndarray
  values: np.ndarray
  envs: Tuple[str, ...]
  runs: Tuple[dataset_lib.Run, ...]
  problems: Tuple[Problem, ...]

  @property
  def seeds(self) -> int:
    return self.values.shape[0]


def read(
  results: Results,
  arm: str,
  envs: Sequence[str],
  value: Value,
  *,
  window: float = 1.0,
) -> Curves:
  """Reads the evaluations of an arm's runs on some worlds.

  Only runs that are done count; if there is none on any of the worlds, those
  that are under way or have failed count as far as they have come. All worlds
  count with as many seeds, and all runs up to the frames that each has reached.

  Args:
    results: the runs.
    arm: the arm.
    envs: the worlds.
    value: what is read of an evaluation; one that gives NaN is left out.
    window: the share of the budget that is shown, or more where it has fewer
      than three evaluations.
  """
  every = {
    env: [
      _Evaluated(run, *_points(results, run, value))
      for run in results.runs_of(arm, env)
    ]
    for env in envs
  }
  some = [o for world in every.values() for o in world if len(o.frames)]
  used = [o for o in some if o.run.status == dataset_lib.DONE] or some
  problems = [
    Problem(f'{arm} was not run on', env) for env in envs if not every[env]
  ]
  problems += _incomplete(
    [one for world in every.values() for one in world],
    {one.run.run_id for one in used},
  )
  worlds: Dict[str, List[_Evaluated]] = collections.defaultdict(list)
  for one in used:
    worlds[one.run.env].append(one)
  seeds = min(map(len, worlds.values()), default=0)
  problems += _uneven(arm, {env: len(used) for env, used in worlds.items()})
  counted = [one for used in worlds.values() for one in used[:seeds]]
  frames, values = _aligned([(one.frames, one.values) for one in counted])
  if counted and not len(frames):
    problems.append(Problem('Without common steps are the runs of', arm))
  if counted:
    budget = max(o.run.budget_steps * o.run.frames_per_step for o in counted)
    shown = np.searchsorted(frames, window * budget, side='right')
    frames = frames[: max(shown, _FEWEST)]
  return Curves(
    frames,
    values[:, : len(frames)]
    .reshape(len(worlds), seeds, len(frames))
    .swapaxes(0, 1),
    tuple(worlds),
    tuple(one.run for one in counted),
    tuple(problems),
  )


def read_by_pretraining(
  results: Results, arm: str, envs: Sequence[str], reading: Reading
) -> Curves:
  """Reads what an arm's runs have come to, by frames of pre-training.

  Only those worlds count that have all budgets of which there is any run.

  Args:
    results: the runs.
    arm: the arm.
    envs: the worlds.
    reading: what is read of a run.
  """
  budgets = sorted({n for env in envs for n in results.budgets(arm, env)})
  every = {n: results.sample(arm, envs, reading, n) for n in budgets}
  problems = [problem for one in every.values() for problem in one.problems]
  some = {n: one for n, one in every.items() if one.envs}
  shared = [e for e in envs if all(e in one.envs for one in some.values())]
  samples = {n: results.sample(arm, shared, reading, n) for n in some}
  if not shared or not samples:
    return Curves(np.zeros(0), np.zeros((0, 0, 0)), (), (), tuple(problems))
  seeds = min(one.seeds for one in samples.values())
  runs = [run for one in samples.values() for run in one.runs]
  return Curves(
    np.array([n * runs[0].frames_per_step for n in samples], np.float64),
    np.stack([one.values[:seeds] for one in samples.values()], axis=-1),
    tuple(shared),
    tuple(runs),
    tuple(problems),
  )


def on_shared_worlds(
  read_arm: Callable[[str, Sequence[str]], Curves],
  arms: Sequence[str],
  envs: Sequence[str],
) -> Dict[str, Curves]:
  """Reads several arms on the same worlds, as medians over them need.

  These are the worlds that all arms have, apart from arms that have none.

  Args:
    read_arm: reads an arm on some worlds.
    arms: the arms.
    envs: the worlds.

  Returns:
    The curves of each arm, by arm.
  """
  every = {arm: read_arm(arm, envs) for arm in arms}
  some = [curves.envs for curves in every.values() if curves.envs]
  shared = [env for env in envs if all(env in one for one in some)]
  return {
    arm: read_arm(arm, shared)._replace(
      problems=(
        *curves.problems,
        *(
          Problem('Not in medians, because another arm has nothing there', env)
          for env in curves.envs
          if env not in shared
        ),
      )
    )
    for arm, curves in every.items()
  }


def mean_line(curves: Curves, label: str, *, band: bool) -> panels.Line:
  """The mean over seeds on one world, from the lowest seed to the highest."""
  values = curves.values[:, 0]  # [seeds, N]
  if not band or curves.seeds < 2:
    return panels.Line(label, curves.frames, values.mean(axis=0))
  return panels.Line(
    label,
    curves.frames,
    values.mean(axis=0),
    values.min(axis=0),
    values.max(axis=0),
  )


def median_line(curves: Curves, label: str) -> panels.Line:
  """The median over worlds with its bootstrap interval over seeds, 95 %."""
  estimate = intervals.bootstrap(
    intervals.over_points(intervals.median), curves.values
  )
  return panels.Line(label, curves.frames, *estimate)


def title(env: str) -> str:
  """A world's name, without what all worlds of its kind have in common."""
  return env.replace('MiniGrid-', '').replace('-v0', '')


class _Evaluated(NamedTuple):
  """A run with the frames of its evaluations and what was read of them."""

  run: dataset_lib.Run
  frames: np.ndarray
  values: np.ndarray


def _points(
  results: Results, run: dataset_lib.Run, value: Value
) -> plots.Curve:
  """The evaluations of a run: frames and values, without NaN."""
  scores = results.scores(run, dataset_lib.EVALUATOR)
  steps = np.array([score.actor_steps for score in scores], np.float64)
  values = np.array([value(run, score) for score in scores], np.float64)
  is_there = ~np.isnan(values)
  steps, values = plots.means_by_step((steps[is_there], values[is_there]))
  return steps * run.frames_per_step, values


def _aligned(curves: Sequence[plots.Curve]) -> plots.Curve:
  """Interpolates to the frames of that curve which has the fewest.

  Args:
    curves: each of at least one point.

  Returns:
    Frames [N] between which all curves exist, and values [curves, N].
  """
  if not curves:
    return np.zeros(0), np.zeros((0, 0))
  start = max(frames[0] for frames, _ in curves)
  end = min(frames[-1] for frames, _ in curves)
  shared = min(
    (
      frames[(frames >= start) & (frames <= end)]
      for frames, _ in curves
      if np.any((frames >= start) & (frames <= end))
    ),
    key=len,
    default=np.zeros(0),
  )
  return shared, np.stack([np.interp(shared, *curve) for curve in curves])


def _incomplete(every: Sequence[_Evaluated], used: Set[str]) -> List[Problem]:
  """Says which runs do not count, or not wholly; `used` has ids of runs."""
  problems = []
  for one in every:
    run = one.run
    if run.run_id in used:
      if run.status != dataset_lib.DONE:
        what = f'Shown as far as it has come ({run.status})'
        problems.append(Problem(what, run.run_id))
    elif run.status == dataset_lib.DONE:
      problems.append(Problem('Without evaluations', run.run_id))
    elif run.status == dataset_lib.FAILED:
      problems.append(failure(run))
    else:
      problems.append(Problem(f'Not done ({run.status})', run.run_id))
  return problems


def _uneven(arm: str, seeds: Dict[str, int]) -> List[Problem]:
  """Says which worlds have fewer seeds than others."""
  fewest = min(seeds.values(), default=0)
  if fewest == max(seeds.values(), default=0):
    return []
  what = f'{arm} counts with the first {fewest} seeds, which is all there is on'
  return [Problem(what, env) for env, n in seeds.items() if n == fewest]
