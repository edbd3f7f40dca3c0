"""The core side of a behavior (π_p): a black box from observations to actions.

A behavior sees every step and the action that was executed, whether or not it
was its own. Its proposal is therefore a valid output of its policy at every
step. It is never trained.
"""

import warnings
from typing import Any, Callable, NamedTuple, Tuple

import jax
import jax.numpy as jnp

from bt_acme.core import types


class BehaviorInput(NamedTuple):
  """What a behavior is given at one step of one environment.

  Attributes:
    observation: uint8 [H, W, C * S], what the environment shows.
    prev_action: int32 [], the primitive action that was executed before.
    is_first: bool [], whether an episode starts with this step, or the behavior
      is to begin anew with its flight (`flight_behavior_state`).
    starts_flight: bool [], whether a flight of this behavior starts with it.
    host_inputs: what the host side supplies (`acting.behavior.Host.inputs`);
      () if nothing.
  """

  observation: jax.Array
  prev_action: jax.Array
  is_first: jax.Array
  starts_flight: jax.Array
  host_inputs: Any = ()

  @property
  def feed(self) -> Any:
    """The old name of `host_inputs`, until the next release."""
    warnings.warn(
      'BehaviorInput.feed is deprecated: it is called host_inputs now.',
      DeprecationWarning,
      stacklevel=2,
    )
    return self.host_inputs


class BehaviorCore(NamedTuple):
  """The core side of a behavior, in one environment, as pure functions.

  Attributes:
    init: makes a state: key -> state.
    step: proposes: (params, BehaviorInput, state) -> (action int32 [], state).
    features: returns what updates the host after the step, () if nothing:
      state -> features.
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
  """Proposes a new random action at every step."""

  def step(
    params: types.Params, inputs: BehaviorInput, state: _ActionState
  ) -> Tuple[jax.Array, _ActionState]:
    del params, inputs
    key, action_key = jax.random.split(state.key)
    action = jax.random.randint(action_key, [], 0, num_actions)
    return action, _ActionState(key, action)

  return BehaviorCore(_init_action, step)


def action_repeat(num_actions: int) -> BehaviorCore:
  """Proposes one random action for a whole flight, as ez-greedy does.

  Source: Dabney et al. 2021 (arXiv:2006.01782). A new action is drawn when a
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
  """Proposes its host's input, int32 []: the action of a policy in Python."""

  def step(
    params: types.Params, inputs: BehaviorInput, state: Any
  ) -> Tuple[jax.Array, Any]:
    del params
    return inputs.host_inputs, state

  return BehaviorCore(lambda key: (), step)
