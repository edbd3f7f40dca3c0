"""The coordinator, which owns the counts, the budget, the phase and the logs.

The coordinator grants the budget of actor steps in leases. An actor overshoots
its last lease by less than one vector step. When an actor fails and is
restarted, a new attempt starts: the unused part of the previous attempt's lease
returns to the budget. The previous attempt is granted no further steps, and its
reports are ignored, even if it is still running somewhere. The run is over when
the coordinator has finished, after the learner and all evaluators have reported
that they are done.
"""

import collections
import contextlib
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bt_acme.config import run as run_config
from bt_acme.runtime import evaluation_schedule, metrics_logger, node

_RECENT = 100  # Episodes in the mean return on the progress line.
_LEARNER_ENDS_SECONDS = 8.0  # Time for the learner to save when told to stop.

# Makes a display, such as `progress.Progress`, given the budget of actor steps;
# returns None to show nothing.
MakeDisplay = Callable[[int], Any | None]


class Coordinator(node.Node):
  """Node that owns the counts, budget, phase, logs and progress of a run.

  Other nodes call its public methods, except those of `node.Node`, from any
  thread.
  """

  is_warm = True

  def __init__(
    self,
    run: run_config.RunConfig,
    make_display: MakeDisplay,
    context: node.Context,
  ) -> None:
    """Initializes the counts to zero.

    Args:
      run: the run.
      make_display: makes the display of the progress.
      context: the context of the node; its clients are not used.
    """
    super().__init__(run, context)
    self._make_display = make_display
    self._display: Any = None
    self._learner_ended = threading.Event()
    # The lock guards all attributes below.
    self._lock = threading.Lock()
    self._phase = node.Phase.STARTING
    self._counts: dict[str, int] = {}
    self._leased = 0
    # The latest attempt of each actor, and the steps granted to it that are not
    # counted yet, by the actor's index.
    self._attempts: dict[int, int] = {}
    self._left: collections.Counter[int] = collections.Counter()
    self._evaluators_done: set[int] = set()  # Indices.
    # For each evaluation point, the rows that the logger has not yet taken.
    self._evaluated: dict[float, list[dict[str, float]]] = {}
    self._status: dict[str, float] = {}
    self._returns: list[float] = []
    self._logs: dict[str, metrics_logger.MetricsLogger] = {}

  def increment(self, **counts: int) -> dict[str, int]:
    """Adds to counts and returns all; see `acme.utils.counting.Counter`."""
    with self._lock:
      self._add(counts)
      return dict(self._counts)

  def get_counts(self) -> dict[str, int]:
    """Returns all counts."""
    return self.increment()

  def poll(self, **status: float) -> tuple[int, dict[str, int]]:
    """Returns the phase of the run, which may advance, and all counts.

    Args:
      **status: values to show on the progress line.
    """
    with self._lock:
      self._status.update(status)
      is_over = self._counts.get('actor_steps', 0) >= self._run.max_actor_steps
      if self._phase == node.Phase.RUNNING and is_over:
        self._phase = node.Phase.LEARNER_FINISHES
      are_done = len(self._evaluators_done) >= self._run.num_evaluators
      if self._phase == node.Phase.EVALUATORS_FINISH and are_done:
        self._phase = node.Phase.DONE
      return self._phase, dict(self._counts)

  def resume(self, counts: Mapping[str, int]) -> None:
    """Starts the run, from the state in a checkpoint if there is one.

    The learner calls this method once it is ready.

    Args:
      counts: all counts at the checkpoint. Later rows of the actors' log are
        dropped.
    """
    with self._lock:
      self._add(counts)
      self._leased = counts['actor_steps']
      self._logger('actor').cut(counts)
      self._phase = max(self._phase, node.Phase.RUNNING)

  def lease(self, actor: int, attempt: int, actor_steps: int) -> int | None:
    """Grants steps of the budget to an actor.

    Args:
      actor: the index of the actor.
      attempt: the number of times that the actor was started before.
      actor_steps: the number of requested steps.

    Returns:
      The number of granted steps, at most `actor_steps`: 0 if the budget is
      used up. None if a later attempt of the actor has called.
    """
    with self._lock:
      if not self._is_latest(actor, attempt):
        return None
      unleased = max(0, self._run.max_actor_steps - self._leased)
      granted = min(actor_steps, unleased)
      self._left[actor] += granted
      self._leased += granted
      return granted

  def report_acting(
    self,
    actor: int,
    attempt: int,
    actor_steps: int,
    rows: list[dict[str, float]],
  ) -> None:
    """Logs the episodes that an actor has finished, and counts its steps.

    Args:
      actor: the index of the actor.
      attempt: the number of times that the actor was started before. The report
        is ignored if a later attempt has called.
      actor_steps: the number of steps since the actor's last report.
      rows: the metrics of each episode.
    """
    with self._lock:
      if not self._is_latest(actor, attempt):
        return
      self._left[actor] -= actor_steps
      self._add({'actor_steps': actor_steps})
      for row in rows:
        # The actor cannot report again, because its steps are counted. The
        # logger keeps the row, and `iterate` raises an error that persists.
        with contextlib.suppress(OSError):
          self._logger('actor').write({**self._counts, **row})
      returns = [row['episode_return'] for row in rows]
      self._returns = (self._returns + returns)[-_RECENT:]

  def report_evaluation(
    self, actor_steps: int, rows: list[dict[str, float]]
  ) -> bool:
    """Logs the episodes of an evaluation, unless they are already logged.

    Args:
      actor_steps: the number of actor steps from which the evaluated parameters
        were learned.
      rows: the metrics of each episode; at least one.

    Returns:
      Whether the rows are on the disk. If they are not, because the disk is
      full, report them again later.
    """
    point = rows[0][evaluation_schedule.POINT]
    with self._lock:
      logger = self._logger('evaluator')  # Raises OSError if the disk is full.
      # The first evaluator may have failed before it removed the evaluation.
      left = self._evaluated.setdefault(point, list(rows))
      if left:
        returns = [row['episode_return'] for row in rows]
        self._status['evaluator_return'] = float(np.mean(returns))
      while left:  # If the logger cannot write a row, it keeps it for later.
        row = {**self._counts, 'actor_steps': actor_steps, **left.pop(0)}
        logger.write(row)
      if not logger.write_waiting():
        return False
    metrics_logger.sync(self._run.workdir, ['evaluator'])
    return True

  def learner_ended(self, finished: bool) -> None:
    """Records that the learner will make no more calls.

    Args:
      finished: whether the run is complete, and the learner has saved and
        exported its final state.
    """
    if finished:
      with self._lock:
        self._phase = max(self._phase, node.Phase.EVALUATORS_FINISH)
    self._learner_ended.set()

  def evaluator_done(self, evaluator: int) -> None:
    """Records that the evaluator with this index has nothing left to do."""
    with self._lock:
      self._evaluators_done.add(evaluator)

  def start(self) -> None:
    """Creates the display, if any."""
    self._display = self._make_display(self._run.max_actor_steps)

  def iterate(self) -> float | None:
    """Writes buffered rows, advances the phase, and shows the progress."""
    with self._lock:
      for logger in self._logs.values():
        logger.write_waiting()
    phase, _ = self.poll()
    self._show(phase)
    return None if phase == node.Phase.DONE else node.POLL_SECONDS

  def stop(self) -> None:
    """Waits for the learner, which was also told to stop.

    If this process exited now, the learner's next call would wait for an answer
    and delay its save.
    """
    self._learner_ended.wait(_LEARNER_ENDS_SECONDS)

  def close(self) -> None:
    """Closes the logs and the display."""
    self._show(self._phase)
    if self._display is not None:
      self._display.close()
    with self._lock:
      for logger in self._logs.values():
        logger.close()

  def _show(self, phase: int) -> None:
    # The counts of a resumed run are unknown until the learner is ready.
    if phase != node.Phase.STARTING and self._display is not None:
      self._display.update(self.progress())

  def progress(self) -> dict[str, float]:
    """Returns the values to display; see `progress.Progress.update`."""
    with self._lock:
      progress = {'actor_steps': 0, **self._counts, **self._status}
      if self._returns:
        progress['episode_return'] = float(np.mean(self._returns))
      return progress

  # Callers of the methods below must hold the lock.

  def _is_latest(self, actor: int, attempt: int) -> bool:
    """Returns whether no later attempt of an actor has started."""
    if attempt > self._attempts.setdefault(actor, attempt):
      self._attempts[actor] = attempt
      # This number is negative if the previous attempt has overshot its lease.
      self._leased -= self._left.pop(actor, 0)
    return attempt == self._attempts[actor]

  def _add(self, counts: Mapping[str, int]) -> None:
    for name, count in counts.items():
      self._counts[name] = self._counts.get(name, 0) + count

  def _logger(self, label: str) -> metrics_logger.MetricsLogger:
    if label not in self._logs:
      settings: dict[str, Any] = {'clock': self._context.clock}
      if label == 'actor':
        settings['keeps'] = metrics_logger.subsampler(
          self._run.max_episode_rows, self._run.max_actor_steps
        )
      self._logs[label] = metrics_logger.MetricsLogger(
        self._run.workdir, label, **settings
      )
    return self._logs[label]
