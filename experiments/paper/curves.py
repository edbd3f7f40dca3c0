"""What the lines of figures are made of: several runs at the same frames.

Against frames of training, a line goes through the evaluations of runs, which
take place at about the same steps; where steps differ, it interpolates. Against
frames of pre-training, each point is what other runs have come to in the end.
"""

import collections
from typing import (
  Any,
  Callable,
  Dict,
  List,
  Mapping,
  NamedTuple,
  Optional,
  Sequence,
  Tuple,
)

import numpy as np

from bt_acme.evaluation import plots
from experiments.harness import dataset as dataset_lib
from experiments.paper.results import Problem, Results, at, column_of, failure

# Maps a world and its returns to the scale of a figure.
Scale = Callable[[str, Any], Any]

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
  *,
  scale: Scale,
  column: str = 'return_mean',
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
    scale: what is made of a value.
    column: of scores, what is read of an evaluation; NaN is left out.
    window: the share of the budget that is shown, or more where it has fewer
      than three evaluations.
  """
  points = {}
  for run in (run for env in envs for run in results.runs_of(arm, env)):
    steps, values = column_of(results, run, column)
    steps, values = plots.means_by_step((steps, scale(run.env, values)))
    points[run] = steps * run.frames_per_step, values
  worlds, problems = _counted(arm, envs, points)
  counted = [run for found in worlds.values() for run in found]
  frames, values = _aligned([points[run] for run in counted])
  if counted and not len(frames):
    problems.append(Problem('Without common steps are the runs of', arm))
  budget = max((r.budget_steps * r.frames_per_step for r in counted), default=0)
  shown = np.searchsorted(frames, window * budget, side='right')
  frames = frames[: max(shown, _FEWEST)]
  shape = (len(worlds), len(counted) // max(len(worlds), 1), len(frames))
  return Curves(
    frames,
    values[:, : len(frames)].reshape(shape).swapaxes(0, 1),
    tuple(worlds),
    tuple(counted),
    tuple(problems),
  )


def _counted(
  arm: str, envs: Sequence[str], points: Mapping[dataset_lib.Run, plots.Curve]
) -> Tuple[Dict[str, List[dataset_lib.Run]], List[Problem]]:
  """Selects as many runs of each world, and says what is missing."""
  some = [run for run, (frames, _) in points.items() if len(frames)]
  used = [run for run in some if run.status == dataset_lib.DONE] or some
  missing = [env for env in envs if all(run.env != env for run in points)]
  problems = [Problem(f'{arm} was not run on', env) for env in missing]
  for run in points:
    problems += _incomplete(run, is_used=run in used)
  worlds: Dict[str, List[dataset_lib.Run]] = collections.defaultdict(list)
  for run in used:
    worlds[run.env].append(run)
  seeds = min(map(len, worlds.values()), default=0)
  what = f'{arm} counts with the first {seeds} seeds, which is all there is on'
  if any(len(found) > seeds for found in worlds.values()):
    fewest = [env for env, found in worlds.items() if len(found) == seeds]
    problems += [Problem(what, env) for env in fewest]
  return {env: found[:seeds] for env, found in worlds.items()}, problems


def _incomplete(run: dataset_lib.Run, *, is_used: bool) -> List[Problem]:
  """Says if a run does not count, or not wholly."""
  is_done = run.status == dataset_lib.DONE
  if is_used and is_done:
    return []
  if not is_used and run.status == dataset_lib.FAILED:
    return [failure(run)]
  what = f'Not done ({run.status})'
  if is_used:
    what = f'Shown as far as it has come ({run.status})'
  return [Problem('Without evaluations' if is_done else what, run.run_id)]


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
  within = [f[(f >= start) & (f <= end)] for f, _ in curves]
  shared = min(filter(len, within), key=len, default=np.zeros(0))
  return shared, np.stack([np.interp(shared, *curve) for curve in curves])


def read_by_pretraining(
  results: Results, arm: str, envs: Sequence[str], *, scale: Scale
) -> Curves:
  """Reads what an arm's runs have come to, by frames of pre-training.

  Only those worlds count that have all budgets of which there is any run.

  Args:
    results: the runs.
    arm: the arm.
    envs: the worlds.
    scale: what is made of a return.
  """

  def reading(found: Results, run: dataset_lib.Run) -> Optional[float]:
    value = at(1.0)(found, run)
    return None if value is None else float(scale(run.env, value))

  budgets = sorted({n for env in envs for n in results.budgets(arm, env)})
  every = {n: results.sample(arm, envs, reading, n) for n in budgets}
  problems = tuple(
    problem for one in every.values() for problem in one.problems
  )
  some = {n: one for n, one in every.items() if one.envs}
  shared = [e for e in envs if all(e in one.envs for one in some.values())]
  samples = {n: results.sample(arm, shared, reading, n) for n in some}
  if not shared or not samples:
    return Curves(np.zeros(0), np.zeros((0, 0, 0)), (), (), problems)
  seeds = min(one.seeds for one in samples.values())
  runs = tuple(run for one in samples.values() for run in one.runs)
  return Curves(
    np.array([n * runs[0].frames_per_step for n in samples], np.float64),
    np.stack([one.values[:seeds] for one in samples.values()], axis=-1),
    tuple(shared),
    runs,
    problems,
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
  what = 'Not in medians, because another arm has nothing there'
  for arm, curves in every.items():
    left_out = [Problem(what, env) for env in curves.envs if env not in shared]
    if left_out:
      problems = (*curves.problems, *left_out)
      every[arm] = read_arm(arm, shared)._replace(problems=problems)
  return every
