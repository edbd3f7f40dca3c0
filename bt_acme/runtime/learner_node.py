"""The learner node, which learns, serves actors, saves and exports."""

import contextlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from absl import logging

from bt_acme import assembly, behaviors, files, untrusted
from bt_acme.config import run as run_config
from bt_acme.runtime import (
  checkpoints,
  evaluation_schedule,
  metrics_logger,
  node,
  provenance,
  saver,
)

# Seconds between two rows of metrics.
_REPORT_SECONDS = 1.0
# Timeout in seconds for the replay when told to stop; a launcher grants ten
# seconds for everything.
_REPLAY_SECONDS = 4.0
# Timeout in seconds for the last call to the coordinator.
_LAST_POLL_SECONDS = 1.0
# Seconds between two attempts to finish a run on a full disk, and between two
# warnings.
_RETRY_SECONDS, _WARNING_SECONDS = 5.0, 600.0


# Makes the learner and the saver of its checkpoints, in the process of the
# node, from the run, the context of the node, a `metrics_logger.MetricsLogger`,
# and a `contextlib.ExitStack` that closes the resources that they use. A
# learner has the methods of `in_process_learner.InProcessLearner`.
MakeLearner = Callable[..., tuple[Any, saver.Saver]]


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
    super().__init__(run, context)
    self._agent = agent
    self._make_learner = make_learner
    self._ready = threading.Event()
    self._has_ended = False
    self._stack = contextlib.ExitStack()
    self._next_poll = self._saved_at = context.clock()
    # The counts of the coordinator at the last poll.
    self._counts: Mapping[str, int] = {'actor_steps': 0, 'learner_steps': 0}
    # The contents of the last checkpoint, once the learner has stopped.
    self._final: saver.State | None = None

  def get_variables(self, names: Sequence[str]) -> list[Any]:
    """Returns the learner's variables by name."""
    return self._ready_learner().get_variables(names)

  def get_statistics(
    self, first_environment: int, num_environments: int
  ) -> Any:
    """Returns the intrinsic-reward statistics of a range of environments."""
    statistics = self._ready_learner().statistics
    return statistics.get(first_environment, num_environments)

  def put_statistics(self, first_environment: int, statistics: Any) -> None:
    """Stores the intrinsic-reward statistics of consecutive environments."""
    self._ready_learner().statistics.put(first_environment, statistics)

  def exchange_scores(self, episodes: Sequence[Any]) -> Any:
    """Adds scored episodes and returns all scores; see `ScoreStore`."""
    return self._ready_learner().scores.exchange(episodes)

  def next_evaluation(
    self, evaluator: int
  ) -> tuple[int, assembly.Learned] | None:
    """Returns the next pending evaluation; None if there is none."""
    return self._evaluations.take(evaluator, self._ready_learner())

  def evaluation_done(self, point: int) -> None:
    """Removes the evaluation of this point, which has been logged."""
    self._evaluations.remove(point)

  def get_largest_priority(self) -> float:
    """Returns the largest priority of the learner's recent steps."""
    return float(self._ready_learner().largest_priority())

  def _ready_learner(self) -> Any:
    self._ready.wait()
    return self._learner

  def start(self) -> None:
    """Makes the learner, and restores the newest checkpoint."""
    run = self._run
    provenance.note_device(run.workdir)
    self._logger = metrics_logger.MetricsLogger(
      run.workdir,
      'learner',
      time_delta=_REPORT_SECONDS if run.uses_launchpad else 0.0,
      clock=self._context.clock,
    )
    self._learner, self._saver = self._make_learner(
      run, self._context, self._logger, self._stack
    )
    restored = checkpoints.restore(
      run.checkpoint_folder, self._learner.template, resumes=True
    )
    if restored is not None:
      arrays, values = restored
      self._learner.restore({'arrays': arrays, 'values': values['learner']})
      self._counts = values['counts']
    self._logger.cut(self._counts)
    actor_steps = self._actor_steps
    self._evaluations = evaluation_schedule.Queue(run, actor_steps)
    # The steps of pending snapshots, smallest first.
    self._snapshots = _pending_snapshots(run, actor_steps)
    self._evaluations.enqueue(actor_steps, self._learner)
    self._coordinator.resume(self._counts)
    self._ready.set()

  def iterate(self) -> float | None:
    """Learns, then saves or finishes if it is time to do so."""
    # After training, evaluators still request the remaining evaluations.
    if self._has_ended:
      return node.POLL_SECONDS
    # A run that resumes at its end does not learn any more.
    learns = self._actor_steps < self._run.max_actor_steps
    try:
      if learns:
        self.is_warm |= self._learner.advance(node.POLL_SECONDS)
    except RuntimeError:
      # The replay may have been told to stop before the learner.
      if not self._context.wait_for_stop(1.0):
        raise
      return node.AT_ONCE
    if self._context.clock() >= self._next_poll:
      self._poll_and_save()
    return node.AT_ONCE if learns else node.POLL_SECONDS

  def stop(self) -> None:
    """Saves, unless the final state of the run is already saved."""
    if self._has_ended:
      return
    # The coordinator may have exited already.
    answer = self._context.call_with_timeout(self._poll, _LAST_POLL_SECONDS)
    if answer is not None:
      _, self._counts = answer
    self._finish(_REPLAY_SECONDS)
    self._context.report_saved()  # Not later: `close` may block.

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
      self._context.report_saved()
    self._logger.close()
    self._stack.close()

  @property
  def _actor_steps(self) -> int:
    """The number of actor steps at the last poll."""
    return self._counts['actor_steps']

  def _poll_and_save(self) -> None:
    """Polls the coordinator, then finishes the run or saves what is due.

    On a full disk, logs a warning; a later call tries again.
    """
    phase, counts = self._poll()
    now = self._context.clock()
    self._next_poll = now + (
      node.POLL_SECONDS if self._run.uses_launchpad else 0.0
    )
    if self._final is None:
      self._counts = counts
    is_over = phase >= node.Phase.LEARNER_FINISHES
    try:
      if is_over:
        self._finish_run()
      else:
        self._store_pending()
        is_time = now - self._saved_at > self._run.checkpoint_period
        if is_time and self._saver.is_idle:
          self._saver.begin(self._state())
          self._saved_at = now
    except OSError as error:
      if not files.is_disk_full(error):
        raise
      if is_over:
        self._next_poll = now + _RETRY_SECONDS
      logging.log_every_n_seconds(
        logging.WARNING,
        'Disk full; %s: %s',
        _WARNING_SECONDS,
        'waiting for space to save the final state'
        if is_over
        else 'pausing checkpoints until pending snapshots and evaluations fit',
        untrusted.one_line(error),
      )

  def _finish_run(self) -> None:
    """Saves and exports the final state, which takes several calls.

    The last call reports that the learner has ended.
    """
    if self._final is None:
      self._learner.flush()
      _, self._counts = self._poll()
      # Acme's counter reports once a second.
      missing = self._learner.learner_steps - self._counts['learner_steps']
      self._counts = self._coordinator.increment(learner_steps=missing)
    if not self._finish(None):
      return
    if self._agent.intrinsic is not None:
      self._export(self._run.behavior_folder)
    if not self._learner.learner_steps:
      logging.warning(
        'The learner took no step, so the policy is untrained: the replay '
        'held fewer than min_replay_size=%d sequences. Raise max_actor_steps '
        'or lower min_replay_size.',
        self._agent.config.replay.min_replay_size,
      )
    self._end(True)

  def _finish(self, seconds: float | None) -> bool:
    """Writes the last checkpoint; see `saver.Saver.finish`.

    Args:
      seconds: the timeout for the replay in seconds; None if the run is over.
    """
    self._logger.flush()
    self._store_pending()
    self._final = self._final or self._state()
    return self._saver.finish(self._final, seconds)

  def _poll(self) -> tuple[int, Mapping[str, int]]:
    """Returns the phase and the counts."""
    return self._coordinator.poll(replay_size=self._learner.replay_size)

  def _state(self) -> saver.State:
    """Returns the contents of a checkpoint, without the replay."""
    # The rows before a checkpoint must survive a power failure, too.
    metrics_logger.sync(self._run.workdir, ('actor', 'learner'))
    state = self._learner.save()
    steps = self._learner.learner_steps
    return state['arrays'], {
      'learner': state['values'],
      'counts': {**self._counts, 'learner_steps': steps},
    }

  def _store_pending(self) -> None:
    """Stores snapshots and evaluations whose steps have been reached.

    Call this method before saving a checkpoint, because a run that resumes from
    the checkpoint skips them. What cannot be stored stays pending.
    """
    while self._snapshots and self._snapshots[0] <= self._actor_steps:
      self._export(self._run.snapshot_folder(self._snapshots[0]))
      del self._snapshots[0]
    self._evaluations.enqueue(self._actor_steps, self._learner)

  def _export(self, folder: str) -> None:
    """Exports the policy as a behavior to a directory."""
    behaviors.export(
      folder,
      agent=self._agent,
      variables=self._learner.variables,
      statistics=self._learner.statistics.merged(),
      actor_steps=self._actor_steps,
    )


def _pending_snapshots(
  run: run_config.RunConfig, actor_steps: int
) -> list[int]:
  """Returns the steps of the snapshots that still have to be exported.

  An earlier session may have exported snapshots after the checkpoint from which
  the run resumes. Logs a warning for each missing snapshot of an earlier step.

  Args:
    run: the run.
    actor_steps: the number of actor steps at which the run starts or resumes.
  """
  missing = [
    s for s in run.snapshots if not os.path.isdir(run.snapshot_folder(s))
  ]
  for step in missing:
    if step <= actor_steps:
      logging.warning(
        'snapshot_steps=%s: the run is already past %d steps. Skipping %s.',
        *(run.snapshot_steps, step, run.snapshot_folder(step)),
      )
  return [s for s in missing if s > actor_steps]
