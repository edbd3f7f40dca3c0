"""One step of one environment, as an actor records it, and where it goes.

Acting makes transitions and the replay stores them, so both import this module
and neither imports the other.
"""

from typing import Any, NamedTuple, Protocol, Tuple

import numpy as np

from bt_acme.core import types

Plain = Tuple[Any, ...]  # The fields of a transition, without classes.


class Transition(NamedTuple):
  """One step of one environment, as the replay takes it.

  `bt_acme.replay.fields` lists the values that are stored. What is not listed
  there, such as the Q-values, is collected all the same, and handed to what
  decides on the priority of a new sequence (`bt_acme.replay.initial_priority`).

  Attributes:
    observation: uint8 [H, W, C * S], shown before the step, newest frame last.
    prev_action: int, the action executed one step before; `types.NO_ACTION` on
      an episode's first step.
    prev_reward: float, the reward for it; 0 on an episode's first step.
    recurrent_state: LSTMState before the step, float32 [hidden_size] each.
    action: int, the executed primitive action, one of A.
    choice: int, what the agent picked, one of A + K.
    source: int, one of `types.OWN`, `EXTRA` and `FLIGHT`.
    probability: float, the acting policy's for the choice; 1 in a flight.
    reward: float, the reward that the agent maximizes.
    discount: float, the environment's discount; 1 on a truncation, unless the
      values after it do not count.
    q_values: float32 [A'], the values that the actor's network gave to all
      choices at the step; not stored.
  """

  observation: np.ndarray
  prev_action: int
  prev_reward: float
  recurrent_state: types.LSTMState
  action: int
  choice: int
  source: int
  probability: float
  reward: float
  discount: float
  q_values: np.ndarray


def to_plain(transition: Transition) -> Plain:
  """Returns the values of a transition without the classes around them."""
  state = tuple(transition.recurrent_state)
  return tuple(transition._replace(recurrent_state=state))  # type: ignore[arg-type]


def from_plain(values: Plain) -> Transition:
  """Undoes `to_plain`."""
  transition = Transition(*values)
  state = types.LSTMState(*transition.recurrent_state)
  return transition._replace(recurrent_state=state)


class TransitionSink(Protocol):
  """Takes the transitions of one environment, in order."""

  def add(self, transition: Transition) -> None:
    """Takes the next transition of the episode."""

  def end_episode(
    self, observation: np.ndarray, prev_action: int, prev_reward: float
  ) -> None:
    """Takes what the episode's last transition led to.

    Args:
      observation: uint8 [H, W, C * S], the episode's final observation.
      prev_action: the action executed in the last step.
      prev_reward: the reward received for it.
    """
