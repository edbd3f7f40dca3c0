"""Checks that an external agent, its behaviors and its environment match."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from acme import specs
from acme.agents.jax import impala, ppo, r2d2
from acme.jax import networks as networks_lib
from acme.jax import utils

from bt_acme import config as config_lib
from bt_acme.acting import behavior as behavior_lib
from bt_acme.agents.external import outer_core
from bt_acme.behaviors import exported


def check_actions(
  environment_spec: specs.EnvironmentSpec, config: config_lib.TransferConfig
) -> None:
  """Raises ValueError if behavior transfer does not support the actions."""
  action_spec = environment_spec.actions
  if not isinstance(action_spec, specs.Array):
    raise ValueError(
      f'The action spec {action_spec} is a structure. Use an environment with '
      'a single discrete action or a single vector.'
    )
  if outer_core.is_discrete(environment_spec):
    return
  if config.flight_epsilon:
    raise ValueError(
      f'flight_epsilon={config.flight_epsilon} needs discrete actions, but the '
      f'actions of this environment are {action_spec}. Set flight_epsilon=0.'
    )
  if config.extra_action:
    raise ValueError(
      'extra_action=True needs discrete actions, but the actions of this '
      f'environment are {action_spec}. Set '
      'TransferConfig(extra_action=False) to use flights only.'
    )


def check_behaviors(
  behaviors: Sequence[behavior_lib.Behavior],
  environment_spec: specs.EnvironmentSpec,
) -> None:
  """Raises ValueError if a behavior cannot act in the environment."""
  shown = outer_core.own_observation(environment_spec.observations)
  action_spec = environment_spec.actions
  if outer_core.is_discrete(environment_spec):
    action_spec = action_spec.num_values
  for behavior in behaviors:
    if (
      isinstance(behavior, exported.Exported)
      and getattr(shown, 'dtype', None) != np.uint8
    ):
      raise ValueError(
        f'behavior={behavior.folder!r} expects a single uint8 image of shape '
        f'{behavior.agent.spec.observation_shape}, but the observations of '
        f'this environment are {shown}. Wrap the environment to return only '
        'the image, and use agents.scale_images for the network.'
      )
    behavior.validate(getattr(shown, 'shape', ()), action_spec)


def check_outputs(
  networks: Any,
  environment_spec: specs.EnvironmentSpec,
  agent_spec: specs.EnvironmentSpec,
) -> None:
  """Raises ValueError for PPO and IMPALA, or without one output per choice.

  The outputs of networks other than Q-networks are unknown and not checked.

  Args:
    networks: the agent's networks.
    environment_spec: the spec of the environment itself.
    agent_spec: the spec of the agent, including extra actions.
  """
  # An agent that imitates (AIL) contains the networks of another agent.
  learns = getattr(networks, 'direct_rl_networks', networks)
  if isinstance(learns, (ppo.PPONetworks, impala.IMPALANetworks)):
    raise ValueError(
      f'An agent with {type(learns).__name__} learns from the probabilities of '
      'its own choices, but some actions are those of a behavior. Choose an '
      'agent that learns from values, such as DQN, R2D2 or TD3.'
    )
  if not outer_core.is_discrete(environment_spec):
    return
  num_actions = environment_spec.actions.num_values
  num_choices = agent_spec.actions.num_values
  shapes = _output_shapes(networks, environment_spec)
  if shapes is not None and not any(num_choices in shape for shape in shapes):
    raise ValueError(
      f'The network has outputs of shape {shapes[0]}, but the agent needs '
      f'{(num_choices,)}: {num_actions} actions and '
      f'{num_choices - num_actions} behaviors. Create the networks '
      'with make_networks of the builder.'
    )


def _output_shapes(
  networks: Any, environment_spec: specs.EnvironmentSpec
) -> list[tuple[int, ...]] | None:
  """Returns the output shapes of a Q-network without the batch dimension.

  The network is not evaluated. The result is None for other networks.
  """
  if not isinstance(
    networks, (r2d2.R2D2Networks, networks_lib.FeedForwardNetwork)
  ):
    return None
  observations = utils.add_batch_dim(
    utils.zeros_like(environment_spec.observations)
  )

  def outputs(key: jax.Array) -> Any:
    if isinstance(networks, r2d2.R2D2Networks):
      params = networks.initial_state.init(key, 1)
      state = networks.initial_state.apply(params, key, 1)
      params = networks.forward.init(key, observations, state)
      return networks.forward.apply(params, key, observations, state)[0]
    params = networks.init(key)
    try:
      return networks.apply(params, observations)
    except (TypeError, ValueError):  # A noisy network also needs a random key.
      return networks.apply(params, key, observations)

  shapes = jax.eval_shape(outputs, jax.random.PRNGKey(0))
  return [leaf.shape[1:] for leaf in jax.tree.leaves(shapes)]
