"""Priorities of new sequences, used until the learner samples the sequences.

With `ReplayConfig.initial_priority='actor'`, priorities are computed here from
the Q-values with which the actor acted, on the host and without another call of
the network. The formulas are the learner's (`bt_acme.core.targets`); the
actor's network replaces both the online and the target network.

Sources: Horgan et al. 2018 (Ape-X, arXiv:1803.00933), Alg. 1, line 11;
Kapturowski et al. 2019 (R2D2), Sec. 2.3: actors compute "initial priorities".
"""

from collections.abc import Callable

import numpy as np

from bt_acme import config as config_lib
from bt_acme.core import priorities as priorities_lib
from bt_acme.core import return_recursion, types
from bt_acme.core import td_errors as td_errors_lib
from bt_acme.replay import blocks

# The priority of the sequence that a block completes.
InitialPriority = Callable[[blocks.FinishedBlock], float]

_UNIT = 1.0
# The fraction by which a learner step moves `largest` toward a lower priority.
_DECAY = 0.01
# The fields to read. Fields that returns depend on are converted to float64.
_READ = {
  **dict.fromkeys(('action', 'choice', 'source')),
  **dict.fromkeys(
    ('probability', 'reward', 'discount', 'q_values'), np.float64
  ),
}


def make(
  config: config_lib.R2D2Config,
  *,
  num_actions: int,
  largest_priority: Callable[[], float] | None = None,
) -> InitialPriority:
  """Returns the configured function that computes initial priorities.

  Args:
    config: the settings of the agent.
    num_actions: A, the number of actions.
    largest_priority: the `LargestPriority` of the learner. None if the learner
      cannot be queried; the largest priority is then 1.
  """
  largest = largest_priority or (lambda: _UNIT)
  chosen = config.replay.initial_priority
  if chosen == 'one':
    return lambda block: _UNIT
  if chosen == 'largest':
    return lambda block: largest()

  def from_actor(block: blocks.FinishedBlock) -> float:
    priority = from_q_values(block, config, num_actions=num_actions)
    return largest() if priority is None else priority

  return from_actor


def from_q_values(
  block: blocks.FinishedBlock,
  config: config_lib.R2D2Config,
  *,
  num_actions: int,
) -> float | None:
  """Computes the priority of a sequence from the Q-values of the actor.

  The last step before a truncation is omitted: the actor does not act on the
  final observation, so its Q-values are unknown.

  Args:
    block: the block that completes the sequence.
    config: the settings of the loss, and of the replay: the length of the
      burn-in and the weight of the largest TD error in the priority.
    num_actions: A, the number of actions.

  Returns:
    The priority that the learner would compute with the actor's network. None
    if the last step before a truncation is the only trained step.

  Raises:
    FloatingPointError: if a Q-value or a reward is not finite.
  """
  # The burn-in is trained only at the start of an episode (`core.burn_in`).
  first = block.sequence[0].steps['prev_action'][0]
  start = 0 if first == types.NO_ACTION else config.replay.burn_in_length
  steps = {
    name: np.concatenate(
      [each.steps[name] for each in block.sequence], dtype=dtype
    )[start:]
    for name, dtype in _READ.items()
  }
  q_values, next_q_values = steps.pop('q_values'), block.next_q_values
  if next_q_values is not None:
    q_values = np.concatenate([q_values, next_q_values[None]])
  elif steps['discount'][-1] == 0:
    q_values = np.concatenate([q_values, np.zeros_like(q_values[:1])])
  else:
    steps = {name: column[:-1] for name, column in steps.items()}
    if not len(steps['choice']):
      return None
  trained = np.ones(len(steps['choice']), np.float32)
  errors = td_errors_lib.td_errors(
    q_values,
    q_values,
    types.SequenceBatch(**steps, valid=trained),
    trained,
    return_recursion.returns_on_host,
    learner=config.learner,
    num_actions=num_actions,
  )
  priority = priorities_lib.sequence_priorities(
    errors, max_weight=config.replay.max_priority_weight
  )
  priorities_lib.check_finite(priority)
  return float(priority)


class LargestPriority:
  """The largest priority of the learner's recent steps.

  Increases take effect immediately; decreases are smoothed. A maximum over the
  whole run would retain the large errors from the start of the run, and new
  sequences would always be sampled before all others.

  Attributes:
    value: the largest priority; None before the first learner step.
  """

  def __init__(self) -> None:
    self.value: float | None = None

  def __call__(self) -> float:
    """Returns the largest priority; 1 before the first learner step."""
    return _UNIT if self.value is None else self.value

  def update(self, priorities: np.ndarray) -> None:
    """Updates the value with the priorities of one learner step, float [B]."""
    newest = float(np.max(priorities))
    if self.value is None or newest >= self.value:
      self.value = newest
    else:
      self.value += _DECAY * (newest - self.value)
