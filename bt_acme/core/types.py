"""Types and containers shared by the modules of the core.

Shape glossary: T time, B batch, A primitive actions, K behaviors, D embedding,
M memory slots, S stacked frames. Time is the first axis: `[T, B, ...]`.

The agent selects a *choice*, one of A' = A + K. The environment receives an
*action*, one of A. With choice A + k, the action of the step is that of the
k-th behavior with an extra action (`TransferConfig.extra_behaviors`). Behaviors
that only fly have no extra action, and K does not count them in A + K.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from bt_acme.core import arrays

Params = Any  # A tree of arrays, for one network or for all of an actor core.
PRNGKey = jax.Array
Metrics = dict[str, jax.Array]  # Scalars that the learner logs.

NO_ACTION = -1  # `prev_action` on the first step; its one-hot is all zeros.

# The component that selected a step's action (`SequenceBatch.source`).
OWN, EXTRA, FLIGHT = 0, 1, 2


class LSTMState(NamedTuple):
  """Recurrent state; float32 [..., hidden_size] each."""

  hidden: jax.Array
  cell: jax.Array


class AgentInput(NamedTuple):
  """The agent's inputs for one step of one environment.

  Attributes:
    observation: uint8 [H, W, C * S], the newest frame last.
    prev_action: int32 [], the primitive action executed at the previous step;
      `NO_ACTION` on an episode's first step.
    prev_reward: float32 [], the reward for `prev_action`, 0 on an episode's
      first step. This is the reward that the agent maximizes: the task's, or
      the intrinsic reward in pre-training. The task's reward is then not used
      at all; the paper does not state this explicitly. With
      `reward_observation='next'`, it is the novelty of the observation before
      this one, which rewards the action before `prev_action`.
    is_first: bool [], whether this is an episode's first step.
  """

  observation: jax.Array
  prev_action: jax.Array
  prev_reward: jax.Array
  is_first: jax.Array


class ActorCore(NamedTuple):
  """Pure functions for acting in one environment; use `jax.vmap` for several.

  The names follow `acme.agents.jax.actor_core.ActorCore`.

  Attributes:
    init: (key, *settings) -> state, before the first step. The core resets
      itself for each new episode, where the input's `is_first` is set.
    select_action: (params, input, state) -> (choice or action int32 [], state).
    get_extras: state -> dict of the values that replay stores with the step;
      called after `select_action`.
    hold: (state, bool []) -> state. Where the flag is set, the recurrent state
      is reset to its value before the last step. None for a core without a
      recurrent state.
  """

  init: Callable[..., Any]
  select_action: Callable[[Params, Any, Any], tuple[jax.Array, Any]]
  get_extras: Callable[[Any], Any]
  hold: Callable[[Any, jax.Array], Any] | None = None


class SequenceBatch(NamedTuple):
  """B sequences of T transitions for the learner; time is the first axis.

  Row t of the first three fields contains the agent's inputs at step t; row T
  follows the last transition. A sequence never crosses the end of an episode:
  in later rows `valid` is 0, and all other values are undefined.
  `bt_acme.replay.fields`, which creates the arrays, also defines their dtypes
  and numbers of rows.

  An actor that computes the priority of its own sequence has arrays [T], and ()
  where the formulas read nothing.

  Attributes:
    frames: uint8 [S - 1 + T + 1, B, H, W, C], single frames; row t's stack is
      frames t .. t + S - 1.
    prev_action: int32 [T + 1, B], the action executed one step earlier.
    prev_reward: float32 [T + 1, B], as in `AgentInput`.
    action: int32 [T, B], the executed primitive action. Both action and choice
      are stored, because the paper's actors store the primitive action and its
      learner relabels the extra action.
    choice: int32 [T, B], the choice whose value is trained: the action, or
      A + k where the k-th behavior with an extra action acted.
    source: uint8 [T, B], one of OWN, EXTRA, FLIGHT.
    probability: float32 [T, B], the probability of the choice under the acting
      policy, needed by Retrace; 1 during a flight.
    reward: float32 [T, B], the reward that the agent maximizes.
    discount: float32 [T, B], the environment's discount: 0 at termination, else
      1, also on a truncation, unless `bootstrap_truncations` is off.
    valid: float32 [T, B], 1 for a valid transition.
    proposal: int32 [T, B], the action that the behavior of the episode
      proposed; () unless the loss uses it (`TransferConfig.kickstarting`).
    recurrent_state: the LSTMState before row 0, float32 [B, hidden_size] each.
  """

  frames: arrays.Array = ()
  prev_action: arrays.Array = ()
  prev_reward: arrays.Array = ()
  action: arrays.Array = ()
  choice: arrays.Array = ()
  source: arrays.Array = ()
  probability: arrays.Array = ()
  reward: arrays.Array = ()
  discount: arrays.Array = ()
  valid: arrays.Array = ()
  proposal: arrays.Array = ()
  recurrent_state: Any = ()
