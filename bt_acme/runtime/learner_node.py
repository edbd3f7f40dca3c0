"""The learner node, which learns, serves actors, saves and exports."""

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from absl import logging

from bt_acme import assembly, behaviors, files, untrusted
from bt_acme.config import run as run_config
from bt_acme.runtime import (
  checkpoints,
  evaluation_schedule,
  metrics,
  node,
  provenance,
  saver,
  snapshots,
)

_POLL_SECONDS = 0.5  # Between two checks whether the run is over.
# Seconds between two rows of metrics.
_REPORT_SECONDS = 1.0
# Timeout in seconds for the replay when told to stop; a launcher grants ten
# seconds for everything.
_REPLAY_SECONDS = 4.0
# Timeout in seconds for the last call to the coordinator.
_LAST_POLL_SECONDS = 1.0


# Makes the learner and the saver of its checkpoints, in the process of the
# node. A learner has the methods of `in_process_learner.InProcessLearner`. The
# stack closes the resources that they use.
MakeLearner = Callable[
  [
    run_config.RunConfig,
    node.Context,
    metrics.MetricsLogger,
    contextlib.ExitStack,
  ],
  tuple[Any, saver.Saver],
]


class LearnerNode(node.Node):
  """Node that runs the learner until the budget is used up.

  Other nodes call its public methods, except those of `node.Node`, from any
  thread. These calls wait until the learner has been restored from its
  checkpoint.
  """

  def __init__(
    self,
    run: run_config.RunConfig,
    agent: assembly.Agent,
    make_learner: MakeLearner,
    context: node.Context,
  ):
    """Initializes a node that has not started.

    Args:
      run: the run.
      agent: the agent that learns.
      make_learner: makes the learner.
      context: the context, with clients of the coordinator and the replay.
    """
    super().__init__(context)
    self._run = run
    self._agent = agent
    self._make_learner = make_learner
    self._coordinator = context.coordinator
    self._is_disk_full = False  # At the last attempt to save.
    self._ready = threading.Event()
    self._has_ended = False
    self._stack = contextlib.ExitStack()
    self._next_poll = self._saved_at = context.clock()
    # The counts of the coordinator at the last poll, and the number of rows in
    # the logs of the actors and the learner by then. The latter is None after
    # resuming from a version that did not save it.
    self._counts: Mapping[str, int] = {}
    self._log_rows: Mapping[str, int] | None = None
    # Made by `start`.
    self._learner: Any
    self._logger: metrics.MetricsLogger
    self._evaluations: evaluation_schedule.Queue
    self._snapshots: list[int]  # Steps of pending snapshots.
    self._saver: saver.Saver

  def get_variables(self, names: Sequence[str]) -> list[Any]:
    """Returns the learner's variables by name."""
    self._ready.wait()
    return self._learner.get_variables(names)

  def get_statistics(
    self, first_environment: int, num_environments: int
  ) -> Any:
    """Returns the intrinsic-reward statistics of a range of environments."""
    self._ready.wait()
    return self._learner.statistics.get(first_environment, num_environments)

  def put_statistics(self, first_environment: int, statistics: Any) -> None:
    """Stores the intrinsic-reward statistics of consecutive environments."""
    self._ready.wait()
    self._learner.statistics.put(first_environment, statistics)

  def exchange_scores(self, episodes: Sequence[Any]) -> Any:
    """Adds scored episodes and returns all scores; see `ScoreStore`."""
    self._ready.wait()
    return self._learner.scores.exchange(episodes)

  def next_evaluation(
    self, evaluator: int
  ) -> tuple[int, assembly.Learned] | None:
    """Returns the next pending evaluation; None if there is none."""
    self._ready.wait()
    # Deferred: copying the variables may wait for learner steps.
    return self._evaluations.take(evaluator, lambda: self._learner.variables)

  def evaluation_done(self, point: int) -> None:
    """Removes the evaluation of this point, which has been logged."""
    self._evaluations.remove(point)

  def get_largest_priority(self) -> float:
    """Returns the largest priority of the learner's recent steps."""
    self._ready.wait()
    return float(self._learner.largest_priority())

  def start(self) -> None:
    """Makes the learner, and restores the newest checkpoint."""
    run = self._run
    provenance.note_device(run.workdir)
    self._logger = metrics.MetricsLogger(
      run.workdir,
      'learner',
      time_delta=_REPORT_SECONDS if run.has_nodes else 0.0,
      clock=self._context.clock,
    )
    self._learner, self._saver = self._make_learner(
      run, self._context, self._logger, self._stack
    )
    self._restore()
    actor_steps, rows = self._actor_steps, self._log_rows
    if rows is not None:
      self._logger.cut(rows['learner'], actor_steps)
    self._evaluations = evaluation_schedule.Queue(run, self._agent, actor_steps)
    self._snapshots = snapshots.pending(run, actor_steps)
    self._enqueue_evaluations()
    self._coordinator.resume(
      self._counts, None if rows is None else rows['actor']
    )
    self._ready.set()

  def iterate(self) -> float | None:
    """Learns, then saves or finishes if it is time to do so."""
    # After training, evaluators still request the remaining evaluations.
    if self._has_ended:
      return _POLL_SECONDS
    try:
      # A run that resumes at its end does not learn any more.
      if self._actor_steps < self._run.max_actor_steps:
        self.is_warm |= self._learner.advance(_POLL_SECONDS)
    except RuntimeError:
      # The replay may have been told to stop before the learner.
      if not self._context.wait_for_stop(1.0):
        raise
      return node.AT_ONCE
    if self._context.clock() >= self._next_poll:
      self._poll_and_save()
    return node.AT_ONCE

  def stop(self) -> None:
    """Saves, unless the final state of the run is already saved."""
    if self._has_ended:
      return
    self._logger.flush()  # Only written rows are counted.
    # The coordinator may have exited already.
    answer = self._context.call_with_timeout(self._poll, _LAST_POLL_SECONDS)
    if answer is not None:
      _, self._counts, self._log_rows = answer
    self._finish(_REPLAY_SECONDS)
    self._context.saved()  # Not later: the next call may block.
    self._end(False)

  def close(self) -> None:
    """Stops sampling and closes the log."""
    if self._ready.is_set() and not self._has_ended:
      self._end(False)
    self._stack.close()

  def _end(self, finished: bool) -> None:
    """Reports that the learner has ended, and releases its resources.

    Args:
      finished: whether the run is complete, and its final state has been saved
        and exported.
    """
    self._has_ended = self.is_warm = True  # Nothing is left to compile.
    # The coordinator may have exited already.
    self._context.call_with_timeout(
      lambda: self._coordinator.learner_ended(finished), _LAST_POLL_SECONDS
    )
    if finished:
      self._context.saved()
    self._logger.close()
    self._stack.close()

  def _restore(self) -> None:
    """Restores the newest checkpoint, if any."""
    restored = checkpoints.restore(
      self._run.checkpoint_folder, self._learner.template
    )
    if restored is None:
      # Rows written before the first checkpoint will be written again.
      self._log_rows = {'actor': 0, 'learner': 0}
      return
    arrays, values = restored
    self._learner.restore({'arrays': arrays, 'values': values['learner']})
    self._counts, self._log_rows = values['counts'], values.get('log_rows')

  @property
  def _actor_steps(self) -> int:
    """The number of actor steps at the last poll."""
    return self._counts.get('actor_steps', 0)

  def _poll_and_save(self) -> None:
    """Polls the coordinator, then finishes the run or saves a checkpoint."""
    phase, self._counts, self._log_rows = self._poll()
    now = self._context.clock()
    self._next_poll = now + (_POLL_SECONDS if self._run.has_nodes else 0.0)
    if phase >= node.Phase.LEARNER_FINISHES:
      self._learner.flush()
      self._logger.flush()  # Only written rows are counted.
      _, self._counts, self._log_rows = self._poll()
      self._finish(None)
      if self._agent.intrinsic is not None:
        self._export(self._run.behavior_folder)
      self._end(True)
      return
    self._try_to_save(now)

  def _finish(self, seconds: float | None) -> None:
    """Writes the last checkpoint.

    Args:
      seconds: the timeout for the replay in seconds; None if the run is over.
    """
    self._store_pending()
    self._saver.finish(self._state(), seconds)

  def _poll(self) -> tuple[int, Mapping[str, int], Mapping[str, int]]:
    """Returns the phase, the counts and the lengths of the logs."""
    # Counted before the call, so that no counted row is newer than the answer.
    own_rows = self._logger.num_written
    phase, counts, actor_rows = self._coordinator.poll_to_save(
      {'replay_size': self._learner.replay_size}
    )
    return phase, counts, {'actor': actor_rows, 'learner': own_rows}

  def _state(self) -> saver.State:
    """Returns the contents of a checkpoint, without the replay."""
    # The rows that a checkpoint counts must survive a power failure, too.
    metrics.sync(self._run.workdir, ('actor', 'learner'))
    state = self._learner.save()
    values: dict[str, Any] = {
      'learner': state['values'],
      'counts': {
        **self._counts,
        'learner_steps': self._learner.learner_steps,
      },
    }
    if self._log_rows is not None:
      values['log_rows'] = dict(self._log_rows)
    return state['arrays'], values

  def _store_pending(self) -> None:
    """Stores pending snapshots and evaluations.

    Call this method before saving a checkpoint, because a run that resumes from
    the checkpoint skips them.
    """
    snapshots.export_due(
      self._run, self._snapshots, self._actor_steps, self._export
    )
    self._enqueue_evaluations()

  def _try_to_save(self, now: float) -> None:
    """Stores pending work, and starts a checkpoint if it is time to do so."""
    try:
      self._store_pending()
      is_time = now - self._saved_at > self._run.checkpoint_period
      if is_time and self._saver.is_idle:
        self._saver.begin(self._state())
        self._saved_at = now
    except OSError as error:
      if not files.is_disk_full(error):
        raise
      if not self._is_disk_full:
        logging.warning(
          'Disk full; pausing checkpoints until pending snapshots and '
          'evaluations fit: %s',
          untrusted.one_line(error),
        )
      self._is_disk_full = True
    else:
      self._is_disk_full = False

  def _enqueue_evaluations(self) -> None:
    self._evaluations.enqueue(
      self._actor_steps,
      lambda: self._learner.variables,
      self._learner.statistics.merged,
    )

  def _export(self, folder: str) -> None:
    """Exports the policy as a behavior to a directory."""
    behaviors.export(
      folder,
      agent=self._agent,
      variables=self._learner.variables,
      statistics=self._learner.statistics.merged(),
      actor_steps=self._actor_steps,
    )
