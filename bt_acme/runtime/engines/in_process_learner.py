"""The learner of a run in one process: it samples, steps, and sets priorities.

It computes its steps while the environments take theirs. What is computed when
is decided by counts alone, so that the seed still decides everything.
"""

import math
from typing import Any, Dict, List, Optional

import jax
import numpy as np

from bt_acme import assembly
from bt_acme import learner as learner_lib
from bt_acme.core import leaves, types
from bt_acme.replay import in_process as in_process_replay
from bt_acme.replay import initial_priority

_ROW_PERIOD = 10  # Learner steps between two rows of metrics.


class Learner:
  """The learner of a run in one process, with its replay.

  Attributes:
    replay: what the actor fills.
    rows: metrics of every tenth finished step.
  """

  def __init__(
    self,
    agent: assembly.Agent,
    seed: int,
    initial_params: Optional[types.Params],
  ):
    config = agent.config
    self._learner = learner_lib.Learner(
      agent, jax.random.key(seed), initial_params
    )
    self._batch_size = config.learner.batch_size
    self._sequence_period = config.replay.sequence_period
    self._allowed = 0  # The steps that the replay allowed a turn ago.
    self._spacing = 1  # The turns from one start of steps to the next.
    self._idle_turns = 0  # The turns since steps were started.
    self.replay = in_process_replay.InProcessReplay(
      config.replay, agent.replay_shapes, seed=seed
    )
    self.rows: List[Dict[str, float]] = []

  @property
  def largest_priority(self) -> initial_priority.LargestPriority:
    """The largest priority of recent finished steps."""
    return self._learner.largest_priority

  @property
  def num_steps(self) -> int:
    """The number of finished steps."""
    return self._learner.num_finished

  def variables(self) -> assembly.Variables:
    """Copies the parameters, when the steps under way are computed."""
    variables: assembly.Variables = jax.tree.map(
      np.array, self._learner.copy_variables()
    )
    return variables

  def advance(self) -> None:
    """Starts the steps that are due, after the end of those under way.

    It is called once a turn, and does not wait for the results of what it
    starts. A step may take several turns. Environments finish sequences at
    once, and the steps that these allow are spread over the turns until the
    next sequences, so that each turn has some to compute meanwhile.
    """
    allowed = self.replay.num_allowed(self._batch_size)
    if allowed > self._allowed:  # There are new sequences.
      self._spacing = max(self._sequence_period // allowed, 1)
    self._allowed = allowed
    self._idle_turns += 1
    if not allowed or self._idle_turns < self._spacing:
      return
    self._idle_turns = 0
    self.finish()
    for _ in range(math.ceil(allowed / self._sequence_period)):
      self._start()
    self._allowed = self.replay.num_allowed(self._batch_size)

  def _start(self) -> None:
    self._learner.start(self.replay.sample(self._batch_size))

  def finish(self) -> None:
    """Waits for the steps under way, and sets the priorities.

    Raises:
      ValueError: if the learner has diverged.
    """
    for _ in self._learner.pending:
      step = self._learner.finish()
      self.replay.update_priorities(step.keys, step.priorities)
      if self.num_steps % _ROW_PERIOD == 0:
        self.rows.append({'learner_steps': self.num_steps, **step.row()})

  def state(self) -> Dict[str, Any]:
    """Returns all that the next steps depend on, in plain values."""
    return {
      'core': jax.tree.leaves(self._learner.arrays()),
      'key': self._learner.key(),
      'num_steps': self.num_steps,
      'under_way': [
        jax.tree.map(np.asarray, tuple(step)) for step in self._learner.pending
      ],
      'schedule': (self._allowed, self._spacing, self._idle_turns),
      'replay': self.replay.state(),
      'largest_priority': self.largest_priority.state(),
      'sampling': self._learner.sampling.state(),
      'rows': list(self.rows),
    }

  def restore(self, state: Dict[str, Any]) -> None:
    """Resumes from a state."""
    self._learner.restore(
      leaves.into(self._learner.template, state['core']),
      state.get('key'),
      [learner_lib.PendingStep(*step) for step in state['under_way']],
    )
    self._learner.num_finished = state['num_steps']
    self._allowed, self._spacing, self._idle_turns = state['schedule']
    self.replay.restore(state['replay'])
    self.largest_priority.restore(state['largest_priority'])
    self._learner.sampling.restore(state['sampling'])
    self.rows = list(state['rows'])
