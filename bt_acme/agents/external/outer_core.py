"""The actor core of behavior transfer for an external agent.

The core draws flights, runs the behaviors that are implemented in JAX, and
decides who acts. The agent's choice is an input of the core, because an
external agent has its own actor.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
from acme import specs
from acme.wrappers import observation_action_reward as oar

from bt_acme import config as config_lib
from bt_acme.acting import behavior as behavior_lib
from bt_acme.core import types
from bt_acme.core.behavior_transfer import behavior_core, bt_actor


def is_discrete(environment_spec: specs.EnvironmentSpec) -> bool:
  """Returns whether the environment's actions are discrete."""
  return isinstance(environment_spec.actions, specs.DiscreteArray)


def own_observation(observation: Any) -> Any:
  """Returns an observation without the additions of Acme's OAR wrapper."""
  if isinstance(observation, oar.OAR):
    return observation.observation
  return observation


class Transfer(NamedTuple):
  """The behaviors to transfer, their settings and the environment.

  Attributes:
    behaviors: the K behaviors.
    config: the settings of flights and extra actions.
    environment_spec: the spec of the environment itself.
    behavior_weights: the weights with which a flight draws its behavior;
      uniform if empty.
  """

  behaviors: tuple[behavior_lib.Behavior, ...]
  config: config_lib.TransferConfig
  environment_spec: specs.EnvironmentSpec
  behavior_weights: tuple[float, ...] = ()


class CoreInput(NamedTuple):
  """A `types.AgentInput` with the agent's choice; all shapes are [1, ...].

  Attributes:
    observation: the environment's observation, a tree of arrays.
    prev_action: the previously executed action; `types.NO_ACTION` or zeros at
      the first step of an episode.
    prev_reward: float32, the reward for it.
    is_first: bool, whether an episode starts.
    choice: the agent's choice.
  """

  observation: Any
  prev_action: np.ndarray
  prev_reward: np.ndarray
  is_first: np.ndarray
  choice: np.ndarray


# The core of an agent whose choice is part of its input.
_AGENT_CORE = types.ActorCore(
  init=lambda key: (),
  select_action=lambda params, inputs, state: (inputs.choice, state),
  get_extras=lambda state: {},
)


def make_core(
  transfer: Transfer, *, evaluation: bool = False
) -> types.ActorCore:
  """Returns a core that adds flights and the extra action to given choices.

  With vector actions, the core only decides who acts and does not process the
  vectors.

  Args:
    transfer: the behaviors to transfer, with their settings.
    evaluation: whether to disable flights; the extra action stays enabled.

  Raises:
    ValueError: if external agents do not support the configuration.
  """
  spec = transfer.environment_spec
  num_actions, cores = 1, [behavior_core.external() for _ in transfer.behaviors]
  if is_discrete(spec):
    num_actions = spec.actions.num_values
    observation = own_observation(spec.observations)
    cores = [
      behavior_lib.make_core(behavior, num_actions, observation)
      for behavior in transfer.behaviors
    ]
  core = bt_actor.wrap(
    _AGENT_CORE,
    cores,
    transfer.config,
    num_actions=num_actions,
    behavior_weights=transfer.behavior_weights,
    evaluation=evaluation,
  )
  # Tracing `init` reports invalid settings before an actor starts.
  jax.eval_shape(core.init, jax.random.key(0))
  return core


def jit_step(
  core: types.ActorCore,
) -> Callable[..., tuple[jax.Array, dict[str, Any], Any]]:
  """Compiles one step of a core, with a leading dimension of 1.

  Args:
    core: the result of `make_core`.

  Returns:
    A function from parameters, inputs and a state to the action, the core's
    extras and the next state.
  """

  def step(
    params: bt_actor.BTParams, inputs: Any, state: Any
  ) -> tuple[jax.Array, dict[str, Any], Any]:
    action, state = jax.vmap(core.select_action, in_axes=(None, 0, 0))(
      params, inputs, state
    )
    return action, jax.vmap(core.get_extras)(state), state

  return jax.jit(step)
