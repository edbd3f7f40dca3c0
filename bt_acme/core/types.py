"""Shapes and containers that cross files of the core.

Shape glossary: T time, B batch, A primitive actions, K behaviors, D embedding,
M memory slots, S stacked frames. Time comes first: `[T, B, ...]`.

A *choice* is what the agent picks, one of A + K; an *action* is what the
environment receives, one of A. Choice A + k hands the step to behavior k.
"""

from typing import Any, Callable, NamedTuple, Optional, Tuple

import jax

Params = Any
PRNGKey = jax.Array

NO_ACTION = -1  # `prev_action` on the first step: its one-hot is all zeros.

# Who decided the action of a step (`SequenceBatch.source`).
OWN, EXTRA, FLIGHT = 0, 1, 2


class LSTMState(NamedTuple):
  """Recurrent state; float32 [..., hidden_size] each."""

  hidden: jax.Array
  cell: jax.Array


class AgentInput(NamedTuple):
  """What one agent sees at one step of one environment.

  Attributes:
    observation: uint8 [H, W, C * S], the newest frame last.
    prev_action: int32 [], the primitive action executed at the step before;
      `NO_ACTION` on an episode's first step.
    prev_reward: float32 [], the reward the agent maximizes, at the step before
      (the task's; in pre-training the intrinsic one, and the task's reaches
      nothing, which the paper does not spell out); 0 on the first step.
    is_first: bool [], whether the episode starts here.
  """

  observation: jax.Array
  prev_action: jax.Array
  prev_reward: jax.Array
  is_first: jax.Array


class ActorCore(NamedTuple):
  """Acting in one environment as three pure functions; `jax.vmap` for many.

  The names are those of `acme.agents.jax.actor_core.ActorCore`.

  Attributes:
    init: (key, *settings) -> state, at the very start. A core starts each
      further episode itself where the input's `is_first` is set.
    select_action: (params, input, state) -> (choice or action int32 [], state).
    get_extras: state -> dict of what replay stores beside the step; read after
      `select_action`, and describes the step just taken.
    hold: (state, bool []) -> state; where set, the recurrent state is again the
      one before the step just taken. None for a core that has none to hold.
  """

  init: Callable[..., Any]
  select_action: Callable[[Params, Any, Any], Tuple[jax.Array, Any]]
  get_extras: Callable[[Any], Any]
  hold: Optional[Callable[[Any, jax.Array], Any]] = None


class ReplayShapes(NamedTuple):
  """What the replay must know of environment and network.

  Attributes:
    frame: (H, W, C), one frame of an observation.
    num_stacked: S, frames stacked in an observation [H, W, C * S].
    lstm_size: units of the stored recurrent state.
  """

  frame: Tuple[int, int, int]
  num_stacked: int
  lstm_size: int


class SequenceBatch(NamedTuple):
  """B sequences of T transitions, as the learner takes them; time first.

  Row t of the first three fields is what the agent saw at step t; row T is
  where the last transition leads. A sequence never crosses an episode's end:
  behind it, `valid` is 0 and nothing else may be relied on.

  Attributes:
    frames: uint8 [S - 1 + T + 1, B, H, W, C], single frames; row t's stack is
      frames t .. t + S - 1.
    prev_action: int32 [T + 1, B].
    prev_reward: float32 [T + 1, B].
    action: int32 [T, B], the executed primitive action. It and the choice are
      both kept: the paper's actors store the primitive action, while its
      learner relabels the extra one.
    choice: int32 [T, B], what the agent's values are trained on: the action, or
      A + k where behavior k acted and has an extra action.
    source: uint8 [T, B], one of OWN, EXTRA, FLIGHT.
    probability: float32 [T, B], of `action` under the acting policy (Retrace).
    reward: float32 [T, B], the reward the agent maximizes.
    discount: float32 [T, B], the environment's: 0 at a terminal, 1 elsewhere,
      on a truncation too.
    valid: float32 [T, B], 1 for a real transition.
    recurrent_state: LSTMState, float32 [B, hidden], before row 0.
  """

  frames: Any
  prev_action: Any
  prev_reward: Any
  action: Any
  choice: Any
  source: Any
  probability: Any
  reward: Any
  discount: Any
  valid: Any
  recurrent_state: LSTMState
