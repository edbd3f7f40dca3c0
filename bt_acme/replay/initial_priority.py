"""Priorities of new sequences, which hold until the learner samples them.

`ReplayConfig.initial_priority` chooses: `actor` computes them here, on the host
and without a further call of the network, from the Q-values with which the
actor acted. The formulas are the learner's own (`bt_acme.core.targets`), with
the actor's network in the place of both the online and the target network.

Sources: Horgan et al. 2018 (Ape-X, arXiv:1803.00933), Alg. 1, line 11;
Kapturowski et al. 2019 (R2D2), Sec. 2.3: "initial priorities" are the actors'.
"""

from typing import Callable, Dict, Optional, Sequence

import numpy as np

from bt_acme import config as config_lib
from bt_acme.core import priorities as priorities_lib
from bt_acme.core import returns, types
from bt_acme.replay import blocks

# The priority of the sequence that a block completes.
InitialPriority = Callable[[blocks.FinishedBlock], float]

_UNIT = 1.0
# How far `largest` goes, with each learner step, toward a smaller priority.
_DECAY = 0.01
# What is read of each step, in float64 where it enters the returns.
_IN_RETURNS = ('probability', 'reward', 'discount', 'q_values')
_READ = {
  **dict.fromkeys(('action', 'choice', 'source')),
  **dict.fromkeys(_IN_RETURNS, np.float64),
}


def make(
  config: config_lib.R2D2Config,
  *,
  num_actions: int,
  largest_priority: Optional[Callable[[], float]] = None,
) -> InitialPriority:
  """Makes the configured function from a new sequence to its priority.

  Args:
    config: the agent's settings.
    num_actions: A, the number of actions.
    largest_priority: the `LargestPriority` of the learner. None where there is
      no learner to ask, which stands for 1.
  """
  largest = largest_priority or (lambda: _UNIT)
  chosen = config.replay.initial_priority
  if chosen == 'one':
    return unit
  if chosen == 'largest':
    return lambda block: largest()

  def of_actor(block: blocks.FinishedBlock) -> float:
    priority = from_q_values(
      block,
      learner=config.learner,
      replay=config.replay,
      num_actions=num_actions,
    )
    return largest() if priority is None else priority

  return of_actor


def unit(block: blocks.FinishedBlock) -> float:
  """Returns 1 for every sequence."""
  del block
  return _UNIT


def from_q_values(
  block: blocks.FinishedBlock,
  *,
  learner: config_lib.LearnerConfig,
  replay: config_lib.ReplayConfig,
  num_actions: int,
) -> Optional[float]:
  """Computes a sequence's priority from the Q-values of the actor.

  What a truncated episode led to is known, but not its Q-values, because the
  actor does not act on it. Its last step is then left out.

  Args:
    block: the block that completes the sequence.
    learner: the settings of the loss.
    replay: the replay's settings: the length of the burn-in, and the priority's
      mix.
    num_actions: A, the number of actions.

  Returns:
    The priority, as the learner would compute it with the actor's network.
    None if all that is trained is the last step before a truncation.

  Raises:
    ValueError: if a Q-value or a reward is not a finite number.
  """
  steps = _trained_steps(block.sequence, replay.burn_in_length)
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
  errors = priorities_lib.td_errors(
    q_values,
    q_values,
    returns.Transitions(**steps, valid=trained),
    trained,
    returns.returns_on_host,
    learner=learner,
    num_actions=num_actions,
  )
  priority = priorities_lib.sequence_priorities(
    errors, max_weight=replay.max_priority_weight
  )
  priorities_lib.check_finite(priority)
  return float(priority)


def _trained_steps(
  sequence: Sequence[blocks.StepValues], burn_in_length: int
) -> Dict[str, np.ndarray]:
  """Returns the steps that are learned from (`bt_acme.core.burn_in`)."""
  first = sequence[0]['prev_action'][0]
  start = 0 if first == types.NO_ACTION else burn_in_length
  return {
    name: np.concatenate([block[name] for block in sequence], dtype=dtype)[
      start:
    ]
    for name, dtype in _READ.items()
  }


class LargestPriority:
  """The largest priority of the learner's recent steps.

  It follows at once to a larger one, and slowly to smaller ones. A maximum over
  the whole run would remember the errors with which a run begins, and new
  sequences would then be sampled before all others for ever.
  """

  def __init__(self) -> None:
    self._value: Optional[float] = None

  def __call__(self) -> float:
    """Returns the largest priority; 1 before the first learner step."""
    return _UNIT if self._value is None else self._value

  def update(self, priorities: np.ndarray) -> None:
    """Takes the priorities of one learner step, float [B]."""
    newest = float(np.max(priorities))
    if self._value is None or newest >= self._value:
      self._value = newest
    else:
      self._value += _DECAY * (newest - self._value)

  def state(self) -> Optional[float]:
    """Returns the value; None before the first learner step."""
    return self._value

  def restore(self, value: Optional[float]) -> None:
    """Resumes from a value that was returned before."""
    self._value = value
