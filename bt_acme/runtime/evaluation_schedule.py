"""The evaluation schedule of a run, and the queue of pending evaluations.

The evaluation points are 0, the multiples of `evaluation_period` and the end of
the budget, so all runs with the same budget share them. An evaluation becomes
pending when the run's actor steps reach its point, and uses the parameters of
that moment. Its rows contain the point as `evaluation_point`, and the actual
count as `actor_steps`.
"""

import pathlib
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from bt_acme import assembly, files
from bt_acme.config import run as run_config
from bt_acme.core.intrinsic import reward_statistics as reward_lib
from bt_acme.evaluation import logs
from bt_acme.runtime import checkpoints, metrics_logger

POINT = 'evaluation_point'  # The name of the column.
_PREFIX = 'evaluation-'


def pending(
  run: run_config.RunConfig, *, last: int, begin: int, actor_steps: int
) -> list[int]:
  """Returns the evaluation points that a run has reached but not yet evaluated.

  Args:
    run: the run.
    last: the last point with an evaluation; -1 before the first.
    begin: skip points up to this number of actor steps, except for the end of
      the budget; -1 skips none.
    actor_steps: the number of actor steps taken so far.
  """
  period, end = run.evaluation_period, run.max_actor_steps
  first = (max(last, begin) // period + 1) * period
  points = list(range(first, min(actor_steps, end) + 1, period))
  if actor_steps >= end > last and end not in points:
    points.append(end)
  return points


def last_point(rows: Iterable[Mapping[str, float]]) -> int:
  """Returns the last point in a log of evaluations; -1 if it is empty."""
  # Version 0.1.0 had no points, and some rows without a count.
  points = (row.get(POINT, row.get('actor_steps', 0)) for row in rows)
  return int(max(points, default=-1))


class Queue:
  """Queue of the pending evaluations, each stored in a directory.

  The directories outlive the processes of the run, so a resumed run still
  evaluates the earlier policies. Methods may be called from any thread.
  """

  def __init__(self, run: run_config.RunConfig, actor_steps: int):
    """Initializes the queue with the evaluations left by earlier sessions.

    Args:
      run: the run.
      actor_steps: the number of actor steps at which the run starts or resumes.
    """
    self._run = run
    self._folder = pathlib.Path(run.checkpoint_folder)
    self._begin = actor_steps or -1
    self._lock = threading.Lock()
    self._taken: dict[int, int] = {}  # Point by evaluator.
    self._drop_unconfirmed()
    rows = logs.read_rows(logs.path_of(run.workdir, 'evaluator'))
    self._last = max([last_point(rows), *self._waiting()])

  def enqueue(self, actor_steps: int, learner: Any) -> None:
    """Stores an evaluation for each point that has been reached.

    Args:
      actor_steps: the number of actor steps taken so far.
      learner: a `bt_acme.learner.Learner`.
    """
    if not self._run.num_evaluators:
      return
    points = pending(
      self._run, last=self._last, begin=self._begin, actor_steps=actor_steps
    )
    for point in points:
      statistics = learner.statistics.merged()
      if statistics is not None:
        statistics = {k: float(v) for k, v in statistics._asdict().items()}
      values = {'actor_steps': actor_steps, 'statistics': statistics}
      checkpoints.write(self._path(point), (learner.variables, values))
      self._last = point

  def take(
    self, evaluator: int, learner: Any
  ) -> tuple[int, assembly.Learned] | None:
    """Returns the earliest available evaluation, or None.

    Args:
      evaluator: the index of the evaluator that will run the evaluation. If the
        same evaluator took an evaluation before and failed, that evaluation
        becomes available again.
      learner: a learner of the same agent. Its variables are copied only if
        there is an evaluation, because this may wait for learner steps.

    Returns:
      The evaluation point, and the policy when the evaluation became pending.
    """
    with self._lock:
      self._taken.pop(evaluator, None)
      points = {*self._waiting()} - {*self._taken.values()}
      if not points:
        return None
      self._taken[evaluator] = point = min(points)
    variables, values = checkpoints.read(self._path(point), learner.variables)
    statistics = values['statistics']
    if statistics is not None:
      statistics = reward_lib.IntrinsicStatistics(**statistics)
    return point, assembly.Learned(values['actor_steps'], variables, statistics)

  def remove(self, point: int) -> None:
    """Removes an evaluation that has been logged."""
    path = self._path(point)
    if path.is_dir():
      files.remove_folder(path)

  def _drop_unconfirmed(self) -> None:
    """Drops the log rows of pending evaluations, which will be repeated.

    An evaluation stays pending until all of its rows are on the disk. Until
    then, the log may contain only some of them.
    """
    waiting = set(self._waiting())
    path = logs.path_of(self._run.workdir, 'evaluator')
    if waiting and path.exists():
      metrics_logger.CSVTable(path).keep(
        lambda row: float(row.get(POINT) or -1) not in waiting
      )

  def _path(self, point: int) -> pathlib.Path:
    return self._folder / f'{_PREFIX}{point}'

  def _waiting(self) -> list[int]:
    """Returns the points of all pending evaluations."""
    return checkpoints.numbers(self._folder, _PREFIX)
