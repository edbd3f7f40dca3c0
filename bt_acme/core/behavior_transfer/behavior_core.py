"""What a behavior (π_p) is: a black box from observations to actions.

A behavior sees every step, whether or not its action is used, together with
the action that was executed, so that its proposal is a valid output of its
policy whenever it is called. It is never trained.
"""

from typing import Any, Callable, NamedTuple, Tuple

import jax
import jax.numpy as jnp

from bt_acme.core import types


class BehaviorInput(NamedTuple):
  """What a behavior is given at one step of one environment.

  Attributes:
    observation: uint8 [H, W, C * S].
    prev_action: int32 [], the executed primitive action before.
    is_first: bool [], whether the episode starts here.
    starts_flight: bool [], whether a flight of this behavior starts here.
    feed: what the host supplies (`behaviors.Behavior.feed`); () if nothing.
  """

  observation: jax.Array
  prev_action: jax.Array
  is_first: jax.Array
  starts_flight: jax.Array
  feed: Any = ()


class BehaviorCore(NamedTuple):
  """A behavior of one environment as pure functions.

  Attributes:
    init: key -> state.
    step: (params, BehaviorInput, state) -> (action int32 [], state).
    features: state -> what the host digests behind the step; () if nothing.
  """

  init: Callable[[types.PRNGKey], Any]
  step: Callable[[types.Params, BehaviorInput, Any], Tuple[jax.Array, Any]]
  features: Callable[[Any], Any] = lambda state: ()


class _ActionState(NamedTuple):
  key: jax.Array
  action: jax.Array


def _init_action(key: types.PRNGKey) -> _ActionState:
  return _ActionState(key, jnp.zeros([], jnp.int32))


def uniform(num_actions: int) -> BehaviorCore:
  """Uniform noise: a new random action every step."""

  def step(
    params: types.Params, inputs: BehaviorInput, state: _ActionState
  ) -> Tuple[jax.Array, _ActionState]:
    del params, inputs
    key, action_key = jax.random.split(state.key)
    action = jax.random.randint(action_key, [], 0, num_actions)
    return action, _ActionState(key, action)

  return BehaviorCore(_init_action, step)


def action_repeat(num_actions: int) -> BehaviorCore:
  """One random action for a whole flight: flights of it are ez-greedy.

  Source: Dabney et al. 2021 (arXiv:2006.01782). A new action is drawn where a
  flight or an episode starts.
  """

  def step(
    params: types.Params, inputs: BehaviorInput, state: _ActionState
  ) -> Tuple[jax.Array, _ActionState]:
    del params
    key, action_key = jax.random.split(state.key)
    drawn = jax.random.randint(action_key, [], 0, num_actions)
    action = jnp.where(
      inputs.starts_flight | inputs.is_first, drawn, state.action
    )
    return action, _ActionState(key, action)

  return BehaviorCore(_init_action, step)


def external() -> BehaviorCore:
  """Any policy that runs outside of JAX: the feed is its proposal, int32 []."""

  def step(
    params: types.Params, inputs: BehaviorInput, state: Any
  ) -> Tuple[jax.Array, Any]:
    del params
    return inputs.feed, state

  return BehaviorCore(lambda key: (), step)
