"""Transitions, which actors create and the replay stores.

Neither of the two imports the other.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bt_acme.core import types

Plain = tuple[Any, ...]  # The fields of a transition, without classes.


class Transition(NamedTuple):
  """One step of one environment.

  `bt_acme.replay.fields` lists the values that are stored. The other values,
  such as the Q-values, are only used to compute the priority of a new sequence
  (`bt_acme.replay.initial_priority`).

  Attributes:
    observation: uint8 [H, W, C * S], before the step, newest frame last.
    prev_action: int, the action executed one step earlier; `types.NO_ACTION` on
      an episode's first step.
    prev_reward: float, as in `types.AgentInput`.
    recurrent_state: LSTMState before the step, float32 [hidden_size] each.
    action: int, the executed primitive action, one of A.
    choice: int, the selected choice, one of A + K.
    source: int, one of `types.OWN`, `EXTRA` and `FLIGHT`.
    probability: float, the probability of the choice under the acting policy; 1
      during a flight.
    reward: float, the reward that the agent maximizes.
    discount: float, the environment's discount; 1 on a truncation, unless
      `bootstrap_truncations` is off (`acting.vector_actor`).
    q_values: float32 [A'], the values of all choices from the actor's network;
      not stored.
    proposal: int, the action that the behavior of the episode proposed, one of
      A; `types.NO_ACTION` unless the loss uses it.
  """

  observation: npt.NDArray[np.uint8]
  prev_action: int
  prev_reward: float
  recurrent_state: types.LSTMState
  action: int
  choice: int
  source: int
  probability: float
  reward: float
  discount: float
  q_values: npt.NDArray[np.float32]
  proposal: int = types.NO_ACTION


def to_plain(transition: Transition) -> Plain:
  """Converts a transition to tuples without custom classes."""
  state = tuple(transition.recurrent_state)
  return tuple(transition._replace(recurrent_state=state))  # type: ignore[arg-type]


def from_plain(values: Plain) -> Transition:
  """Restores a transition from the result of `to_plain`."""
  transition = Transition(*values)
  state = types.LSTMState(*transition.recurrent_state)
  return transition._replace(recurrent_state=state)
