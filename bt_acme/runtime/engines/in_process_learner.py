"""The learner of a run in one process: it samples, steps, and sets priorities.

It computes its steps while the environments take theirs. What is computed when
is decided by counts alone, so that the seed still decides everything.
"""

import math
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

import jax
import numpy as np

from bt_acme import assembly
from bt_acme import learner as learner_lib
from bt_acme.acting import statistics_store
from bt_acme.core import learner_core, types
from bt_acme.replay import in_process as in_process_replay
from bt_acme.runtime import metrics

_ROW_PERIOD = 10  # Learner steps between two rows of metrics.


class Learner:
  """The learner of a run in one process, with its replay.

  It is a `learner_node.Learner`.

  Attributes:
    replay: the replay that the actor fills.
    actor_statistics: returns the actor's statistics by the first environment
      of each group.
  """

  def __init__(
    self,
    agent: assembly.Agent,
    seed: int,
    initial_params: Optional[types.Params],
    *,
    logger: Optional[metrics.MetricsLogger] = None,
    increment: Callable[..., Mapping[str, int]] = lambda **counts: counts,
  ):
    """Initializes the parameters and an empty replay.

    Args:
      agent: the agent that learns.
      seed: decides everything that is random.
      initial_params: parameters of the Q-network to start from; None for fresh
        ones.
      logger: the logger of the metrics of every tenth step.
      increment: adds to the counts of the run and returns all.
    """
    config = agent.config
    self._learner = learner_lib.Learner(
      agent, jax.random.key(seed), initial_params
    )
    self._batch_size = config.learner.batch_size
    self._sequence_period = config.replay.sequence_period
    self._allowed = 0  # The steps that the replay allowed a turn ago.
    self._spacing = 1  # The turns from one start of steps to the next.
    self._idle_turns = 0  # The turns since steps were started.
    self._has_started = False
    self._logger = logger
    self._increment = increment
    self._statistics = statistics_store.make_store(agent)
    self.actor_statistics: Callable[[], Mapping[int, Any]] = dict
    self.replay = in_process_replay.InProcessReplay(
      config.replay, agent.replay_shapes, seed=seed
    )

  @property
  def learner_steps(self) -> int:
    """The number of finished steps."""
    return self._learner.num_finished

  @property
  def replay_size(self) -> int:
    """The number of sequences in the replay."""
    return len(self.replay)

  @property
  def max_priority(self) -> float:
    """The largest priority of recent steps."""
    return self._learner.largest_priority()

  @property
  def template(self) -> learner_core.LearnerState:
    """The structure, shapes and dtypes of the arrays that `save` returns."""
    return self._learner.template

  @property
  def variables(self) -> assembly.Variables:
    """Copies of the parameters, when the steps under way are computed."""
    variables: assembly.Variables = jax.tree.map(
      np.array, self._learner.copy_variables()
    )
    return variables

  def get_variables(self, names: Sequence[str]) -> List[types.Params]:
    """Returns variables by name: `agent` or `intrinsic`."""
    variables = self.variables
    return [getattr(variables, name) for name in names]

  def get_statistics(
    self, first_environment: int, num_environments: int
  ) -> Optional[Any]:
    """Returns None, because the actor restores its own state."""
    return None

  def put_statistics(self, first_environment: int, statistics: Any) -> None:
    """Takes nothing, because `actor_statistics` has them."""

  def merged_statistics(self) -> Optional[Any]:
    """Returns the statistics of all environments as one; None without any."""
    return self._store_statistics().merged()

  def flush(self) -> None:
    """Leaves the steps under way, which a longer run would not finish here."""

  def advance(self, seconds: float = 0.0) -> bool:
    """Starts the steps that are due, after the end of those under way.

    It is called once a turn, and does not wait for the results of what it
    starts. A step may take several turns. Environments finish sequences at
    once, and the steps that these allow are spread over the turns until the
    next sequences, so that each turn has some to compute meanwhile.

    Args:
      seconds: not used, because counts alone decide.

    Returns:
      Whether a step was ever started.
    """
    del seconds
    allowed = self.replay.num_allowed(self._batch_size)
    if allowed > self._allowed:  # There are new sequences.
      self._spacing = max(self._sequence_period // allowed, 1)
    self._allowed = allowed
    self._idle_turns += 1
    if allowed and self._idle_turns >= self._spacing:
      self._idle_turns = 0
      self._finish()
      for _ in range(math.ceil(allowed / self._sequence_period)):
        self._start()
      self._allowed = self.replay.num_allowed(self._batch_size)
    return self._has_started

  def _start(self) -> None:
    self._learner.start(self.replay.sample(self._batch_size))
    self._has_started = True

  def _finish(self) -> None:
    """Waits for the steps under way, and sets the priorities.

    Raises:
      ValueError: if the learner has diverged.
    """
    for _ in self._learner.pending:
      step = self._learner.finish()
      self.replay.update_priorities(step.keys, step.priorities)
      counts = self._increment(learner_steps=1)
      if self._logger is not None and self.learner_steps % _ROW_PERIOD == 0:
        self._logger.write({**counts, **step.row()})

  def save(self) -> Mapping[str, Any]:
    """Returns what a checkpoint holds of any learner."""
    return {
      'arrays': self._learner.arrays(),
      'values': {
        'statistics': self._store_statistics().save(),
        'max_priority': self._learner.final_largest_priority(),
        'learner_steps': self.learner_steps,
        'key': self._learner.key(),
      },
    }

  def restore(self, state: Mapping[str, Any]) -> None:
    """Restores what `save` returned."""
    values = state['values']
    self._learner.restore(state['arrays'], values.get('key'))
    self._learner.num_finished = values['learner_steps']
    self._statistics.restore(values['statistics'])

  def state(self) -> Dict[str, Any]:
    """Returns what the next steps depend on besides what `save` returns."""
    return {
      'under_way': [
        jax.tree.map(np.asarray, tuple(step)) for step in self._learner.pending
      ],
      'schedule': (self._allowed, self._spacing, self._idle_turns),
      'replay': self.replay.state(),
      'largest_priority': self._learner.largest_priority.state(),
      'sampling': self._learner.sampling.state(),
    }

  def restore_state(self, state: Mapping[str, Any]) -> None:
    """Restores what `state` returned, after `restore`."""
    self._learner.resume_steps(
      learner_lib.PendingStep(*step) for step in state['under_way']
    )
    self._allowed, self._spacing, self._idle_turns = state['schedule']
    self.replay.restore(state['replay'])
    self._learner.largest_priority.restore(state['largest_priority'])
    self._learner.sampling.restore(state['sampling'])

  def _store_statistics(self) -> statistics_store.StatisticsStore:
    """Returns a store with the actor's newest statistics."""
    for first_environment, statistics in self.actor_statistics().items():
      self._statistics.put(first_environment, statistics)
    return self._statistics
