"""The learner's process: it learns, answers actors, saves and exports."""

import contextlib
import functools
import threading
import time
from typing import Any, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import jax
from absl import logging
from acme.utils import counting

from bt_acme import behaviors, files, untrusted
from bt_acme.agents import builders as builders_lib
from bt_acme.config import run as run_config
from bt_acme.runtime import (
  checkpoints,
  evaluation_schedule,
  metrics,
  provenance,
  replay_checkpoints,
  saver,
  snapshots,
)
from bt_acme.runtime import context as context_lib
from bt_acme.runtime.phases import Phase

_POLL_SECONDS = 0.5  # Between two questions whether the run is over.
# Seconds between two rows of metrics, and between two reports of counts.
_REPORT_SECONDS = 1.0
# Seconds that a learner that is told to stop waits for the replay; a launcher
# grants ten for everything.
_REPLAY_SECONDS = 4.0
# Seconds that it waits for the coordinator's last answer.
_LAST_POLL_SECONDS = 1.0


class _Standing(NamedTuple):
  """How far the run is, all by the same moment.

  Attributes:
    counts: all counts of the coordinator.
    log_rows: the number of rows in the log of each label, of which a node knows
      its own; None if an earlier version did not save it.
  """

  counts: Mapping[str, int]
  log_rows: Optional[Mapping[str, int]]


class LearnerNode:
  """Runs the learner until the budget is used up.

  All public methods except `run` are called by other nodes, from any thread.
  They wait until the learner has been restored from its checkpoint.
  """

  def __init__(
    self,
    run: run_config.RunConfig,
    builder: builders_lib.AgentBuilder,
    initial_params: Any,
    context: context_lib.Context,
  ):
    """Builds nothing yet.

    Args:
      run: the run.
      builder: builds the agent's learner.
      initial_params: parameters of the Q-network to start from; None for fresh
        ones.
      context: has clients of the coordinator and the replay.
    """
    assert context.coordinator is not None
    self._run = run
    self._builder = builder
    self._initial_params = initial_params
    self._is_disk_full = False  # Whether the disk was full at the last look.
    self._context = context
    self._coordinator = context.coordinator
    self._ready = threading.Event()
    self._learner: Any = None
    self._logger: Any = None
    self._evaluations: Any = None
    self._has_compiled = False

  def get_variables(self, names: Sequence[str]) -> List[Any]:
    """Returns the learner's variables of these names."""
    self._ready.wait()
    variables: List[Any] = self._learner.get_variables(names)
    return variables

  def get_statistics(
    self, first_environment: int, num_environments: int
  ) -> Any:
    """Returns the statistics of the intrinsic reward of some environments."""
    self._ready.wait()
    return self._learner.get_statistics(first_environment, num_environments)

  def put_statistics(self, first_environment: int, statistics: Any) -> None:
    """Takes the statistics of the environments from this one on."""
    self._ready.wait()
    self._learner.put_statistics(first_environment, statistics)

  def next_evaluation(
    self, evaluator: int
  ) -> Optional[evaluation_schedule.Evaluation]:
    """Hands out the next evaluation that is due; None if there is none."""
    self._ready.wait()
    evaluation: Optional[evaluation_schedule.Evaluation] = (
      self._evaluations.take(evaluator, self._learner.variables)
    )
    return evaluation

  def evaluation_done(self, point: int) -> None:
    """Notes that the evaluation of this point has been logged."""
    self._evaluations.remove(point)

  def get_max_priority(self) -> float:
    """Returns the largest priority of the learner's recent steps."""
    self._ready.wait()
    return float(self._learner.max_priority)

  def run(self) -> None:
    """Learns, and saves at intervals, at the end, and when told to stop."""
    with contextlib.ExitStack() as stack:
      if self._run.checkpoint_replay:
        stack.enter_context(replay_checkpoints.in_use(self._run))
      self._run_to_the_end()

  def _run_to_the_end(self) -> None:
    provenance.note_device(self._run.workdir)
    dataset = self._builder.make_dataset_iterator(self._context.replay)
    logger = metrics.make_logger(
      self._run.workdir, 'learner', time_delta=_REPORT_SECONDS
    )
    learner = self._builder.make_learner(
      jax.random.key(self._run.seed),
      None,
      dataset,
      self._context.replay,
      counting.Counter(self._coordinator, time_delta=_REPORT_SECONDS),
      logger=logger,
      initial_params=self._initial_params,
    )
    standing = self._restore(learner)
    actor_steps = standing.counts.get('actor_steps', 0)
    if standing.log_rows is not None:
      logger.cut(standing.log_rows['learner'], actor_steps)
    self._learner, self._logger = learner, logger
    self._evaluations = evaluation_schedule.Queue(
      self._run, self._builder.agent, actor_steps
    )
    self._put_evaluations(learner, standing.counts)
    rows = standing.log_rows
    self._coordinator.start(
      standing.counts, None if rows is None else rows['actor']
    )
    self._ready.set()
    finished = False
    try:
      finished = self._learn(learner, dataset, standing)
    finally:
      self._coordinator.learner_ended(finished)
      dataset.stop()
      logger.close()
    self._context.saved()
    # Until the program stops, evaluators ask for what is left to evaluate.
    while not self._context.wait_for_stop(_POLL_SECONDS):
      self._context.alive()

  def _restore(self, learner: Any) -> _Standing:
    """Restores the newest checkpoint, if any, and returns what it stood at."""
    restored = checkpoints.restore(
      self._run.checkpoint_folder, learner.template
    )
    if restored is None:
      # What was logged before the first checkpoint will be logged again.
      return _Standing({}, {'actor': 0, 'learner': 0})
    arrays, values = restored
    learner.restore({'arrays': arrays, 'values': values['learner']})
    return _Standing(values['counts'], values.get('log_rows'))

  def _learn(self, learner: Any, dataset: Any, standing: _Standing) -> bool:
    """Learns and saves; returns whether it did so to the end of the run."""
    saved = time.monotonic()
    ahead = snapshots.Snapshots(
      self._run, standing.counts.get('actor_steps', 0)
    )
    writes = self._make_saver()
    while not self._context.wait_for_stop(0):
      phase, standing = self._poll(learner)
      if phase >= Phase.LEARNER_FINISHES:
        learner.flush()
        break
      kept = self._try_to_keep(learner, standing.counts, ahead)
      if time.monotonic() - saved > self._run.checkpoint_period:
        if kept and writes.is_idle:
          writes.begin(self._state(learner, standing))
          saved = time.monotonic()
      try:
        self._take_steps(learner, dataset)
      except RuntimeError:
        # The replay may have been told to stop before the learner is.
        if self._context.wait_for_stop(1.0):
          break
        raise
    stops = self._context.wait_for_stop(0)
    if stops:
      standing = self._poll_once_more(learner, standing)
    self._keep(learner, standing.counts, ahead)
    self._logger.flush()
    writes.finish(
      self._state(learner, standing), _REPLAY_SECONDS if stops else None
    )
    if not stops and self._builder.agent.intrinsic is not None:
      self._export(learner, standing.counts, self._run.behavior_folder)
    return not stops

  def _poll(self, learner: Any) -> Tuple[int, _Standing]:
    """Asks the coordinator how far the run is, and in which phase."""
    phase, counts, actor_rows = self._coordinator.poll_to_save(
      {'replay_size': learner.replay_size}
    )
    return phase, _Standing(counts, {'actor': actor_rows})

  def _poll_once_more(self, learner: Any, standing: _Standing) -> _Standing:
    """Asks how far the run is; the coordinator may have gone before."""
    answers: List[_Standing] = []

    def ask() -> None:
      with contextlib.suppress(Exception):
        answers.append(self._poll(learner)[1])

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(_LAST_POLL_SECONDS)
    return answers[0] if answers else standing

  def _take_steps(self, learner: Any, dataset: Any) -> None:
    """Learns until it is time to ask again whether the run is over."""
    deadline = time.monotonic() + _POLL_SECONDS
    while time.monotonic() < deadline and not self._context.wait_for_stop(0):
      if dataset.ready(_POLL_SECONDS / 2):
        learner.step()
        self._has_compiled = True
      if self._has_compiled:
        self._context.alive()

  def _make_saver(self) -> saver.Saver:
    run = self._run
    if not run.checkpoint_replay:
      return saver.Saver(run.checkpoint_folder)
    return saver.Saver(
      run.checkpoint_folder,
      functools.partial(
        replay_checkpoints.take,
        run,
        self._builder.agent.config.replay,
        self._context.replay,
      ),
      functools.partial(replay_checkpoints.clear, run),
    )

  def _state(self, learner: Any, standing: _Standing) -> saver.State:
    """Returns what a checkpoint holds beside the replay."""
    state = learner.save()
    values = {
      'learner': state['values'],
      'counts': {**standing.counts, 'learner_steps': learner.learner_steps},
    }
    if standing.log_rows is not None:
      own_rows = {'learner': self._logger.num_rows}
      values['log_rows'] = {**standing.log_rows, **own_rows}
    return saver.State(state['arrays'], values)

  def _keep(
    self, learner: Any, counts: Mapping[str, int], ahead: snapshots.Snapshots
  ) -> None:
    """Keeps what is due, before a checkpoint says that it has been."""
    ahead.export_due(
      counts.get('actor_steps', 0),
      functools.partial(self._export, learner, counts),
    )
    self._put_evaluations(learner, counts)

  def _try_to_keep(
    self, learner: Any, counts: Mapping[str, int], ahead: snapshots.Snapshots
  ) -> bool:
    """Keeps what is due; returns whether the disk had room for it."""
    try:
      self._keep(learner, counts, ahead)
    except OSError as error:
      if not files.is_disk_full(error):
        raise
      if not self._is_disk_full:
        logging.warning(
          'No checkpoint is written until the disk has room for what is due '
          'before: %s',
          untrusted.one_line(error),
        )
      self._is_disk_full = True
      return False
    self._is_disk_full = False
    return True

  def _put_evaluations(self, learner: Any, counts: Mapping[str, int]) -> None:
    self._evaluations.enqueue(
      counts.get('actor_steps', 0),
      learner.variables,
      learner.merged_statistics(),
    )

  def _export(
    self, learner: Any, counts: Mapping[str, int], folder: str
  ) -> None:
    """Exports the policy as a behavior to a folder."""
    behaviors.export(
      folder,
      agent=self._builder.agent,
      variables=learner.variables,
      statistics=learner.merged_statistics(),
      actor_steps=counts['actor_steps'],
    )
