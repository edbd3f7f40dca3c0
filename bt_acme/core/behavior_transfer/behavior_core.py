"""The core side of a behavior (π_p): a black box from observations to actions.

A behavior receives every step and the executed action, even when that action
was selected elsewhere, unless it cannot act (`TransferConfig.proposers`), or
not in this episode (`TransferConfig.occasional`). Its proposal is therefore a
valid output of its policy at every step. Behaviors are never trained.
"""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from bt_acme.core import types


class BehaviorInput(NamedTuple):
  """The inputs of a behavior for one step of one environment.

  Attributes:
    observation: uint8 [H, W, C * S], the environment's observation.
    prev_action: int32 [], the primitive action executed at the previous step.
    is_first: bool [], whether an episode starts at this step, or the behavior
      restarts with its flight (`flight_behavior_state`).
    starts_flight: bool [], whether a flight of this behavior starts here.
    host_inputs: the inputs from the host side (`acting.behavior.Host.inputs`);
      () if there are none.
    prev_reward: float32 [], the task's reward for `prev_action`; 0 at first
      steps.
  """

  observation: jax.Array
  prev_action: jax.Array
  is_first: jax.Array
  starts_flight: jax.Array
  host_inputs: Any = ()
  prev_reward: Any = 0.0

  @property
  def feed(self) -> Any:
    """Deprecated name of `host_inputs`, removed in the next release."""
    warnings.warn(
      'BehaviorInput.feed is deprecated. Use BehaviorInput.host_inputs.',
      DeprecationWarning,
      stacklevel=2,
    )
    return self.host_inputs


class BehaviorCore(NamedTuple):
  """The core side of a behavior in one environment, as pure functions.

  Attributes:
    init: key -> state; creates a state.
    step: (params, BehaviorInput, state) -> (action int32 [], state); proposes
      an action.
    features: state -> features; returns the features that update the host after
      the step, or () if there are none.
  """

  init: Callable[[types.PRNGKey], Any]
  step: Callable[[types.Params, BehaviorInput, Any], tuple[jax.Array, Any]]
  features: Callable[[Any], Any] = lambda state: ()


def uniform(num_actions: int) -> BehaviorCore:
  """Builds a behavior that proposes a new random action at every step."""
  return _random_actions(num_actions, lambda inputs: True)


def action_repeat(num_actions: int) -> BehaviorCore:
  """Builds a behavior that repeats one random action, as in ez-greedy.

  A new action is drawn when a flight or an episode starts. Source: Dabney et
  al. 2021 (arXiv:2006.01782).
  """
  return _random_actions(
    num_actions, lambda inputs: inputs.starts_flight | inputs.is_first
  )


def _random_actions(
  num_actions: int, draws: Callable[[BehaviorInput], Any]
) -> BehaviorCore:
  """Builds a behavior that proposes its last action where it draws none.

  The state is the random key for future steps, and the last action.
  """

  def step(
    params: types.Params, inputs: BehaviorInput, state: Any
  ) -> tuple[jax.Array, Any]:
    del params
    key, action_key = jax.random.split(state[0])
    drawn = jax.random.randint(action_key, [], 0, num_actions, jnp.int32)
    action = jnp.where(draws(inputs), drawn, state[1])
    return action, (key, action)

  return BehaviorCore(lambda key: (key, jnp.zeros([], jnp.int32)), step)


def external() -> BehaviorCore:
  """Builds a behavior that proposes its host input, an action int32 []."""

  def step(
    params: types.Params, inputs: BehaviorInput, state: Any
  ) -> tuple[jax.Array, Any]:
    del params
    return inputs.host_inputs, state

  return BehaviorCore(lambda key: (), step)
