"""The points at which a run is evaluated, and the evaluations that are due.

The points are 0, the multiples of `evaluation_period` and the end of the
budget, so that all runs of a budget share them. An evaluation is due when the
run's count reaches its point, and plays with the parameters of that moment. Its
rows have the point as `evaluation_point`, and the true count as `actor_steps`.
"""

import pathlib
import re
import threading
from typing import (
  Any,
  Callable,
  Dict,
  Iterable,
  List,
  Mapping,
  NamedTuple,
  Optional,
)

import numpy as np

from bt_acme import assembly, files
from bt_acme.config import run as run_config
from bt_acme.evaluation import logs
from bt_acme.runtime import checkpoints, metrics

POINT = 'evaluation_point'  # The column.
_NAME = re.compile(r'evaluation-(\d+)$')


def pending(
  run: run_config.RunConfig, *, last: int, begin: int, actor_steps: int
) -> List[int]:
  """Returns the points that a run has reached and is not evaluated at.

  Args:
    run: the run.
    last: the last point that has had its evaluation; -1 before the first.
    begin: the number of actor steps up to which nothing is caught up on, but
      for the end of the budget; -1 for none.
    actor_steps: the number of actor steps that have been taken.
  """
  period, end = run.evaluation_period, run.max_actor_steps
  first = (max(last, begin) // period + 1) * period
  points = list(range(first, min(actor_steps, end) + 1, period))
  if actor_steps >= end > last and end not in points:
    points.append(end)
  return points


def last_point(rows: Iterable[Mapping[str, float]]) -> int:
  """Returns the last point in a log of evaluations; -1 if it is empty."""
  # Version 0.1.0 had no points, and rows without any count.
  points = (row.get(POINT, row.get('actor_steps', 0)) for row in rows)
  return int(max(points, default=-1))


class Evaluation(NamedTuple):
  """An evaluation that is due.

  Attributes:
    point: the point that it stands for.
    actor_steps: the number of actor steps that had been taken.
    variables: the parameters at that moment.
    statistics: the merged statistics of the intrinsic reward; None without one.
  """

  point: int
  actor_steps: int
  variables: assembly.Variables
  statistics: Any


class Queue:
  """Queue of the pending evaluations, each stored in a directory.

  Evaluations outlive the processes of the run, so a resumed run still evaluates
  the earlier policies. Methods may be called from any thread.
  """

  def __init__(
    self, run: run_config.RunConfig, agent: assembly.Agent, actor_steps: int
  ):
    """Initializes the queue with the evaluations left by earlier sessions.

    Args:
      run: the run.
      agent: the agent that is evaluated.
      actor_steps: the number of actor steps at which the run starts or resumes.
    """
    self._run = run
    self._agent = agent
    self._folder = pathlib.Path(run.checkpoint_folder)
    self._begin = actor_steps or -1
    self._lock = threading.Lock()
    self._taken: Dict[int, int] = {}  # Points, by the evaluator at work.
    self._drop_unconfirmed()
    rows = logs.read_rows(run.workdir, 'evaluator')
    self._last = max([last_point(rows), *self._waiting()])

  def enqueue(
    self,
    actor_steps: int,
    get_variables: Callable[[], assembly.Variables],
    get_statistics: Callable[[], Any],
  ) -> None:
    """Keeps what is to be evaluated at the points that have been reached.

    Args:
      actor_steps: the number of actor steps that have been taken.
      get_variables: returns the parameters, NumPy arrays.
      get_statistics: returns the merged statistics of the intrinsic reward.
    """
    if not self._run.num_evaluators:
      return
    points = pending(
      self._run, last=self._last, begin=self._begin, actor_steps=actor_steps
    )
    for point in points:
      statistics = get_statistics()
      values = {
        'actor_steps': actor_steps,
        'statistics': None
        if statistics is None
        else {k: float(v) for k, v in statistics._asdict().items()},
      }
      checkpoints.write(self._path(point), get_variables(), values)
      self._last = point

  def take(
    self, evaluator: int, get_template: Callable[[], assembly.Variables]
  ) -> Optional[Evaluation]:
    """Returns the earliest available evaluation, or None.

    Args:
      evaluator: the index of the evaluator that will play it. An evaluation
        that this evaluator took and did not finish, because it failed, becomes
        available again.
      get_template: returns variables of the same structure, shapes and dtypes.
        It is called only if there is an evaluation.
    """
    with self._lock:
      self._taken.pop(evaluator, None)
      taken = self._taken.values()
      points = [p for p in self._waiting() if p not in taken]
      if not points:
        return None
      point = min(points)
      self._taken[evaluator] = point
    variables, values = checkpoints.read(self._path(point), get_template())
    statistics = values['statistics']
    if statistics is not None:
      assert self._agent.intrinsic is not None
      statistics = self._agent.intrinsic.reward.statistics_class(
        **{name: np.float64(value) for name, value in statistics.items()}
      )
    return Evaluation(point, values['actor_steps'], variables, statistics)

  def remove(self, point: int) -> None:
    """Forgets an evaluation, because it has been logged."""
    path = self._path(point)
    if path.is_dir():
      files.remove_folder(path)

  def _drop_unconfirmed(self) -> None:
    """Drops the rows of evaluations that wait, which are played again.

    An evaluation is removed once all of its rows are on the disk. Where it was
    not, the log may lack some of them.
    """
    waiting = set(self._waiting())
    path = pathlib.Path(self._run.workdir) / 'logs' / 'evaluator' / 'logs.csv'
    if waiting and path.exists():
      metrics.CSVTable(path).keep(
        lambda row: not row.get(POINT) or int(float(row[POINT])) not in waiting
      )

  def _path(self, point: int) -> pathlib.Path:
    return self._folder / f'evaluation-{point}'

  def _waiting(self) -> List[int]:
    """Returns the points of all evaluations that are kept."""
    if not self._folder.is_dir():
      return []
    matches = (_NAME.match(path.name) for path in self._folder.iterdir())
    return [int(match[1]) for match in matches if match]
