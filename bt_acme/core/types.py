"""Shapes, and the containers that several files of the core share.

Shape glossary: T time, B batch, A primitive actions, K behaviors, D embedding,
M memory slots, S stacked frames. Time comes first: `[T, B, ...]`.

A *choice* is what the agent picks, one of A + K; an *action* is what the
environment receives, one of A. Choice A + k leaves the step to behavior k.
"""

from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

import jax

from bt_acme.core import arrays

Params = (
  Any  # A tree of arrays: a network's own, or those of an actor core's parts.
)
PRNGKey = jax.Array
Metrics = Dict[str, jax.Array]  # Scalars that the learner logs.

NO_ACTION = -1  # `prev_action` on the first step; its one-hot is all zeros.

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
    prev_reward: float32 [], the reward for it, 0 on an episode's first step.
      It is the reward that the agent maximizes: the task's, or in pre-training
      the intrinsic one. The task's reward then reaches nothing, which the paper
      does not spell out.
    is_first: bool [], whether the episode starts here.
  """

  observation: jax.Array
  prev_action: jax.Array
  prev_reward: jax.Array
  is_first: jax.Array


class ActorCore(NamedTuple):
  """Acting in one environment as pure functions; `jax.vmap` serves many.

  The names are those of `acme.agents.jax.actor_core.ActorCore`.

  Attributes:
    init: (key, *settings) -> state, before the first step. The core itself
      starts each further episode, where the input's `is_first` is set.
    select_action: (params, input, state) -> (choice or action int32 [], state).
    get_extras: state -> dict of what replay stores with the step. It is called
      after `select_action`, and describes the step just taken.
    hold: (state, bool []) -> state. Where the flag is set, the recurrent state
      is again the one from before the step just taken. None for a core that has
      no recurrent state to hold.
  """

  init: Callable[..., Any]
  select_action: Callable[[Params, Any, Any], Tuple[jax.Array, Any]]
  get_extras: Callable[[Any], Any]
  hold: Optional[Callable[[Any, jax.Array], Any]] = None


class SequenceBatch(NamedTuple):
  """B sequences of T transitions, as the learner takes them; time first.

  Row t of the first three fields is what the agent saw at step t; row T is
  where the last transition leads. A sequence never crosses an episode's end:
  in the rows after it `valid` is 0, and nothing else may be relied on. Dtypes
  and rows are said in `bt_acme.replay.fields` too, which makes the arrays.

  Attributes:
    frames: uint8 [S - 1 + T + 1, B, H, W, C], single frames; row t's stack is
      frames t .. t + S - 1.
    prev_action: int32 [T + 1, B], the action executed one step before.
    prev_reward: float32 [T + 1, B], the reward for it.
    action: int32 [T, B], the executed primitive action. Both it and the choice
      are kept, because the paper's actors store the primitive action while its
      learner relabels the extra one.
    choice: int32 [T, B], what the agent's values are trained on: the action, or
      A + k where behavior k acted and has an extra action.
    source: uint8 [T, B], one of OWN, EXTRA, FLIGHT.
    probability: float32 [T, B], the choice's probability under the acting
      policy, which Retrace needs; 1 in a flight.
    reward: float32 [T, B], the reward that the agent maximizes.
    discount: float32 [T, B], the environment's discount: 0 at a terminal, 1
      elsewhere, also on a truncation.
    valid: float32 [T, B], 1 for a real transition.
    recurrent_state: the LSTMState before row 0, float32 [B, hidden_size] each.
  """

  frames: arrays.Array
  prev_action: arrays.Array
  prev_reward: arrays.Array
  action: arrays.Array
  choice: arrays.Array
  source: arrays.Array
  probability: arrays.Array
  reward: arrays.Array
  discount: arrays.Array
  valid: arrays.Array
  recurrent_state: LSTMState
