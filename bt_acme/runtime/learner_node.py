"""The learner's process: it learns, answers actors, saves and exports."""

import threading
import time
from typing import Any, Dict, List, Optional, Sequence

import jax
from acme.utils import counting

from bt_acme import behaviors
from bt_acme.agents import builders as builders_lib
from bt_acme.config import run as run_config
from bt_acme.runtime import (
  checkpoints,
  evaluation_grid,
  metrics,
  provenance,
  snapshots,
)
from bt_acme.runtime import context as context_lib
from bt_acme.runtime.phases import Phase

_POLL_SECONDS = 0.5  # Between two questions whether the run is over.
# Seconds between two rows of metrics, and between two reports of counts.
_REPORT_SECONDS = 1.0


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
    self._context = context
    self._coordinator = context.coordinator
    self._ready = threading.Event()
    self._learner: Any = None
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
  ) -> Optional[evaluation_grid.Evaluation]:
    """Hands out the next evaluation that is due; None if there is none."""
    self._ready.wait()
    evaluation: Optional[evaluation_grid.Evaluation] = self._evaluations.take(
      evaluator, self._learner.variables
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
    counts = self._restore(learner)
    self._learner = learner
    self._evaluations = evaluation_grid.Queue(
      self._run, self._builder.agent, counts.get('actor_steps', 0)
    )
    self._put_evaluations(learner, counts)
    self._coordinator.start(counts)
    self._ready.set()
    finished = False
    try:
      finished = self._learn(learner, dataset, counts)
    finally:
      self._coordinator.learner_ended(finished)
      dataset.stop()
      logger.close()
    # Until the program stops, evaluators ask for what is left to evaluate.
    while not self._context.wait_for_stop(_POLL_SECONDS):
      self._context.alive()

  def _restore(self, learner: Any) -> Dict[str, int]:
    """Restores the newest checkpoint, if any, and returns its counts."""
    restored = checkpoints.restore(
      self._run.checkpoint_folder, learner.template
    )
    if restored is None:
      return {}
    arrays, values = restored
    learner.restore({'arrays': arrays, 'values': values['learner']})
    return dict(values['counts'])

  def _learn(self, learner: Any, dataset: Any, counts: Dict[str, int]) -> bool:
    """Learns and saves; returns whether it did so to the end of the run."""
    saved = time.monotonic()
    ahead = snapshots.Snapshots(self._run, counts.get('actor_steps', 0))
    while not self._context.wait_for_stop(0):
      phase, counts = self._coordinator.poll(
        {'replay_size': learner.replay_size}
      )
      if phase >= Phase.LEARNER_FINISHES:
        learner.flush()
        break
      self._keep(learner, counts, ahead)
      try:
        self._take_steps(learner, dataset)
      except RuntimeError:
        # The replay may have been told to stop before the learner is.
        if self._context.wait_for_stop(1.0):
          break
        raise
      if time.monotonic() - saved > self._run.checkpoint_period:
        self._save(learner, counts)
        saved = time.monotonic()
    self._keep(learner, counts, ahead)
    self._save(learner, counts)
    if self._context.wait_for_stop(0):
      return False
    if self._builder.agent.intrinsic is not None:
      self._export(learner, counts, [self._run.behavior_folder])
    return True

  def _take_steps(self, learner: Any, dataset: Any) -> None:
    """Learns until it is time to ask again whether the run is over."""
    deadline = time.monotonic() + _POLL_SECONDS
    while time.monotonic() < deadline and not self._context.wait_for_stop(0):
      if dataset.ready(_POLL_SECONDS / 2):
        learner.step()
        self._has_compiled = True
      if self._has_compiled:
        self._context.alive()

  def _save(self, learner: Any, counts: Dict[str, int]) -> None:
    state = learner.save()
    checkpoints.save(
      self._run.checkpoint_folder,
      state['arrays'],
      {
        'learner': state['values'],
        'counts': {**counts, 'learner_steps': learner.learner_steps},
      },
    )

  def _keep(
    self, learner: Any, counts: Dict[str, int], ahead: snapshots.Snapshots
  ) -> None:
    """Keeps what is due, before a checkpoint says that it has been."""
    self._export(learner, counts, ahead.due(counts.get('actor_steps', 0)))
    self._put_evaluations(learner, counts)

  def _put_evaluations(self, learner: Any, counts: Dict[str, int]) -> None:
    self._evaluations.put_due(
      counts.get('actor_steps', 0),
      learner.variables,
      learner.merged_statistics(),
    )

  def _export(
    self, learner: Any, counts: Dict[str, int], folders: Sequence[str]
  ) -> None:
    """Exports the policy as a behavior to each of some folders."""
    for folder in folders:
      behaviors.export(
        folder,
        agent=self._builder.agent,
        variables=learner.variables,
        statistics=learner.merged_statistics(),
        actor_steps=counts['actor_steps'],
      )
