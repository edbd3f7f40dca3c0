"""The coordinator: it keeps the counts, the budget, the phase and the logs.

It hands out the budget of actor steps in leases. An actor overshoots its last
lease by less than one turn of its environments. An actor that dies and is
restarted begins another attempt: what is left of the lease of the previous
one goes back to the budget, and the previous attempt is granted and counted no
more, even if it is still running somewhere. The run is over when the
coordinator has finished. By then the learner and all evaluators have reported
that they are done.
"""

import dataclasses
import threading
from typing import (
  Any,
  Callable,
  Dict,
  List,
  Mapping,
  Optional,
  Protocol,
  Set,
  Tuple,
)

import numpy as np

from bt_acme.config import run as run_config
from bt_acme.runtime import context as context_lib
from bt_acme.runtime import evaluation_schedule, metrics, node
from bt_acme.runtime.phases import Phase

_POLL_SECONDS = 0.5
_RECENT = 100  # Episodes whose mean return the progress line shows.
_LEARNER_ENDS_SECONDS = 8.0  # What the learner gets to save when told to stop.


class Display(Protocol):
  """Shows the progress of a run."""

  def update(self, values: Mapping[str, Any]) -> None:
    """Takes the values that `progress.Progress.update` describes."""

  def close(self) -> None:
    """Leaves the last state on the screen."""


@dataclasses.dataclass
class _Lease:
  """What an actor has been granted in its latest attempt.

  Attributes:
    attempt: the number of attempts before it.
    left: the actor steps that were granted and are not counted yet.
  """

  attempt: int
  left: int = 0


class Coordinator(node.Node):
  """Counts, budget, phase, logs and progress of a run.

  All public methods but those of `node.Node` are called by other nodes, from
  any thread.
  """

  is_warm = True

  def __init__(
    self,
    run: run_config.RunConfig,
    make_display: Callable[[int], Display],
    context: context_lib.Context,
  ) -> None:
    """Initializes the counts to zero.

    Args:
      run: the run.
      make_display: takes the budget of actor steps.
      context: the surroundings of the node; its clients are not used.
    """
    super().__init__(context)
    self._run = run
    self._make_display = make_display
    self._display: Optional[Display] = None
    self._learner_ended = threading.Event()
    # The lock guards everything below it.
    self._lock = threading.Lock()
    self._phase = Phase.STARTING
    self._counts: Dict[str, int] = {}
    self._leased = 0
    self._leases: Dict[int, _Lease] = {}  # By the actor's index.
    self._evaluators_done: Set[int] = set()  # Their indices.
    self._evaluated: Set[Optional[float]] = set()  # Their points.
    self._status: Dict[str, float] = {}
    self._returns: List[float] = []
    self._logs: Dict[str, metrics.MetricsLogger] = {}

  def increment(self, **counts: int) -> Dict[str, int]:
    """Adds to counts and returns all, as `acme.utils.counting.Counter` does."""
    with self._lock:
      self._add(counts)
      return dict(self._counts)

  def get_counts(self) -> Dict[str, int]:
    """Returns all counts."""
    with self._lock:
      return dict(self._counts)

  def poll(self) -> Tuple[int, Dict[str, int]]:
    """Returns the phase of the run and all counts."""
    with self._lock:
      return self._advance(), dict(self._counts)

  def poll_to_save(
    self, status: Mapping[str, float]
  ) -> Tuple[int, Dict[str, int], int]:
    """Returns the phase, all counts, and the rows of the actors' log by then.

    Args:
      status: the values that the caller adds to the progress line.
    """
    with self._lock:
      self._status.update(status)
      rows = self._logger('actor').num_written
      return self._advance(), dict(self._counts), rows

  def resume(
    self, counts: Mapping[str, int], actor_rows: Optional[int] = None
  ) -> None:
    """Takes what a checkpoint holds; the learner is ready.

    Args:
      counts: all counts.
      actor_rows: the rows that the actors' log had by then, to which it is cut;
        None if this is not known.
    """
    with self._lock:
      self._add({'actor_steps': 0, 'learner_steps': 0, **counts})
      self._leased = counts.get('actor_steps', 0)
      if actor_rows is not None:
        self._logger('actor').cut(actor_rows, self._leased)
      self._advance_to(Phase.RUNNING)

  def lease(self, actor: int, attempt: int, actor_steps: int) -> Optional[int]:
    """Grants steps of the budget to an actor.

    Args:
      actor: its index.
      attempt: the number of times that it was started before.
      actor_steps: the number of steps that it asks for.

    Returns:
      At most this number; 0 if the budget is used up, and None if a later
      attempt of the actor has asked before.
    """
    with self._lock:
      lease = self._lease_of(actor, attempt)
      if lease is None:
        return None
      unleased = max(0, self._run.max_actor_steps - self._leased)
      granted = min(actor_steps, unleased)
      lease.left += granted
      self._leased += granted
      return granted

  def report_acting(
    self,
    actor: int,
    attempt: int,
    actor_steps: int,
    rows: List[Dict[str, float]],
  ) -> None:
    """Logs episodes that an actor has finished, and counts its steps.

    Args:
      actor: its index.
      attempt: the number of times that it was started before. The report is
        ignored if a later attempt has asked for steps.
      actor_steps: the number of steps since its last report.
      rows: the metrics of each episode.
    """
    with self._lock:
      lease = self._lease_of(actor, attempt)
      if lease is None:
        return
      lease.left -= actor_steps
      self._add({'actor_steps': actor_steps})
      for row in rows:
        self._logger('actor').write({**self._counts, **row})
      returns = [row['episode_return'] for row in rows]
      self._returns = (self._returns + returns)[-_RECENT:]

  def report_evaluation(
    self, actor_steps: int, rows: List[Dict[str, float]]
  ) -> None:
    """Logs the episodes of an evaluation.

    Args:
      actor_steps: the number of steps that the evaluated parameters had learned
        from.
      rows: the metrics of each episode, of which there are some.
    """
    returns = [row['episode_return'] for row in rows]
    point = rows[0].get(evaluation_schedule.POINT)
    with self._lock:
      if point is not None and point in self._evaluated:
        return  # Its first evaluator failed before it was removed.
      logger = self._logger('evaluator')  # It may find no room on the disk.
      self._evaluated.add(point)
      for row in rows:
        logger.write({**self._counts, 'actor_steps': actor_steps, **row})
      self._status['evaluator_return'] = float(np.mean(returns))

  def evaluations_are_logged(self) -> bool:
    """Returns whether the disk has all rows of the evaluations so far."""
    with self._lock:
      if not self._logger('evaluator').write_waiting():
        return False
      metrics.sync(self._run.workdir, ['evaluator'])
      return True

  def learner_ended(self, finished: bool) -> None:
    """Notes that the learner will make no more calls.

    Args:
      finished: whether it has saved and exported the end of the whole run.
    """
    if finished:
      with self._lock:
        self._advance_to(Phase.EVALUATORS_FINISH)
    self._learner_ended.set()

  def evaluator_done(self, evaluator: int) -> None:
    """Notes that the evaluator of this index has nothing left to evaluate."""
    with self._lock:
      self._evaluators_done.add(evaluator)

  def start(self) -> None:
    """Shows the budget."""
    self._display = self._make_display(self._run.max_actor_steps)

  def turn(self) -> Optional[float]:
    """Moves on to the next phase if it is time, and shows the progress."""
    self._write_waiting()
    phase, _ = self.poll()
    # Before the start, a resumed run's counts are not known yet.
    if phase != Phase.STARTING and self._display is not None:
      self._display.update(self.progress())
    return None if phase == Phase.DONE else _POLL_SECONDS

  def stop(self) -> None:
    """Waits for the learner, which was told to stop as well.

    If this process exited now, the learner's next call would wait for an answer
    instead of letting it save.
    """
    self._learner_ended.wait(_LEARNER_ENDS_SECONDS)

  def close(self) -> None:
    """Closes the logs and the display."""
    if self._display is not None:
      self._display.update(self.progress())
      self._display.close()
    with self._lock:
      for logger in self._logs.values():
        logger.close()

  def _write_waiting(self) -> None:
    """Writes the rows that had no room on the disk before."""
    with self._lock:
      for logger in self._logs.values():
        logger.write_waiting()

  def progress(self) -> Dict[str, float]:
    """Returns the values that `progress.Progress.update` describes."""
    with self._lock:
      progress = {'actor_steps': 0, **self._counts, **self._status}
      if self._returns:
        progress['episode_return'] = float(np.mean(self._returns))
      return progress

  # The lock is held by whoever calls the methods below.

  def _lease_of(self, actor: int, attempt: int) -> Optional[_Lease]:
    """Returns an actor's lease; None if a later attempt has begun."""
    lease = self._leases.setdefault(actor, _Lease(attempt))
    if attempt > lease.attempt:
      # An attempt may also have overshot its lease, by steps that were counted.
      self._leased -= lease.left
      lease = self._leases[actor] = _Lease(attempt)
    return lease if lease.attempt == attempt else None

  def _advance(self) -> Phase:
    """Moves on to the next phase if it is time, and returns the phase."""
    steps = self._counts.get('actor_steps', 0)
    if self._phase == Phase.RUNNING and steps >= self._run.max_actor_steps:
      self._advance_to(Phase.LEARNER_FINISHES)
    if (
      self._phase == Phase.EVALUATORS_FINISH
      and len(self._evaluators_done) >= self._run.num_evaluators
    ):
      self._advance_to(Phase.DONE)
    return self._phase

  def _add(self, counts: Mapping[str, int]) -> None:
    for name, count in counts.items():
      self._counts[name] = self._counts.get(name, 0) + count

  def _advance_to(self, phase: Phase) -> None:
    self._phase = max(self._phase, phase)

  def _logger(self, label: str) -> metrics.MetricsLogger:
    if label not in self._logs:
      subsampler = metrics.Subsampler(
        self._run.max_episode_rows, self._run.max_actor_steps
      )
      self._logs[label] = metrics.make_logger(
        self._run.workdir,
        label,
        subsampler=subsampler if label == 'actor' else None,
        clock=self._context.clock,
      )
    return self._logs[label]
