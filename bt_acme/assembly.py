"""Assembles an agent for its configuration and its environment.

This is the one place where R2D2, NGU and BT are put together from the core. The
builders and the run in one process both start here.
"""

import contextlib
import dataclasses
import functools
from typing import Any, Dict, NamedTuple, Optional, Tuple

import jax
import numpy as np

from bt_acme import config as config_lib
from bt_acme import environments
from bt_acme.acting import behavior as behavior_lib
from bt_acme.core import networks as networks_lib
from bt_acme.core import r2d2_actor, types
from bt_acme.core.behavior_transfer import behavior_core, bt_actor, flights
from bt_acme.core.intrinsic import networks as intrinsic_lib
from bt_acme.core.intrinsic import ngu_actor, rewards
from bt_acme.core.intrinsic import reward as reward_lib
from bt_acme.replay import fields


class EnvironmentSpec(NamedTuple):
  """What an agent must know of its environment.

  Attributes:
    name: the name that `environments.make` takes.
    observation_shape: (H, W, C * S), the shape of a uint8 observation.
    num_stacked: S, the number of frames in an observation.
    num_actions: A, the number of actions.
  """

  name: str
  observation_shape: Tuple[int, int, int]
  num_stacked: int
  num_actions: int

  @property
  def frame_channels(self) -> int:
    """C, the number of channels of one frame."""
    return self.observation_shape[-1] // self.num_stacked


class Variables(NamedTuple):
  """What the learner publishes and actors fetch."""

  agent: types.Params
  intrinsic: types.Params


class Intrinsic(NamedTuple):
  """The intrinsic reward of an agent in pre-training.

  Attributes:
    config: the reward's settings.
    reward: which networks, memory and statistics it has, and its formula.
    networks: the networks behind it.
  """

  config: config_lib.IntrinsicConfig
  reward: reward_lib.Reward
  networks: intrinsic_lib.IntrinsicNetworks


@dataclasses.dataclass(frozen=True)
class Agent:
  """R2D2, NGU or BT, as the class of its configuration says.

  Attributes:
    config: an R2D2Config, NGUConfig or BTConfig.
    spec: the environment's spec.
    behaviors: the behaviors that BT transfers.
    behavior_weights: the weights with which a flight draws its behavior;
      uniform if empty.
  """

  config: config_lib.R2D2Config
  spec: EnvironmentSpec
  behaviors: Tuple[behavior_lib.Behavior, ...] = ()
  behavior_weights: Tuple[float, ...] = ()

  def __post_init__(self) -> None:
    if (self.transfer is not None) != bool(self.behaviors):
      raise ValueError(
        'behaviors and BTConfig go together: BTConfig needs at least one '
        'behavior, R2D2Config and NGUConfig take none.'
      )
    networks_lib.torso_kind(
      self.config.network.torso, self.spec.observation_shape
    )
    for behavior in self.behaviors:
      behavior.validate(self.spec.observation_shape, self.spec.num_actions)
    if self.behaviors:
      flights.relative_weights(self.behavior_weights, len(self.behaviors))
    _ = self._behavior_cores  # Checks what the behaviors propose.

  def __getstate__(self) -> Dict[str, Any]:
    """Leaves out the networks, which every process makes for itself."""
    return {
      field.name: getattr(self, field.name)
      for field in dataclasses.fields(self)
    }

  @property
  def nameless(self) -> 'Agent':
    """The agent of any environment of this shape; what it computes is equal.

    What is compiled for one agent serves all whose nameless ones are equal.
    """
    return self.named('')

  def named(self, name: str) -> 'Agent':
    """Returns this agent in an environment of another name and equal shape.

    Nothing else about it changes. Therefore both share their networks, and
    nothing is validated again.
    """
    renamed = object.__new__(Agent)
    renamed.__dict__.update(self.__dict__, spec=self.spec._replace(name=name))
    return renamed

  @property
  def transfer(self) -> Optional[config_lib.TransferConfig]:
    """How behaviors are transferred; None without behavior transfer."""
    if isinstance(self.config, config_lib.BTConfig):
      return self.config.transfer
    return None

  @property
  def num_extra_actions(self) -> int:
    """The number of extra actions: K, or 0 if there are none."""
    if self.transfer is None or not self.transfer.extra_action:
      return 0
    return len(self.behaviors)

  @functools.cached_property
  def _behavior_cores(self) -> Tuple[behavior_core.BehaviorCore, ...]:
    observation = jax.ShapeDtypeStruct(self.spec.observation_shape, np.uint8)
    return tuple(
      behavior_lib.make_core(behavior, self.spec.num_actions, observation)
      for behavior in self.behaviors
    )

  @functools.cached_property
  def network(self) -> networks_lib.QNetwork:
    """The Q-network."""
    return networks_lib.make_q_network(
      self.config.network,
      self.spec.observation_shape,
      self.spec.num_actions,
      self.num_extra_actions,
    )

  @functools.cached_property
  def intrinsic(self) -> Optional[Intrinsic]:
    """The intrinsic reward in pre-training; None without one."""
    if not isinstance(self.config, config_lib.NGUConfig):
      return None
    config = self.config.intrinsic
    networks = intrinsic_lib.make_networks(
      config,
      observation_shape=self.spec.observation_shape,
      frame_channels=self.spec.frame_channels,
      num_actions=self.spec.num_actions,
      torso=self.config.network.torso,
    )
    return Intrinsic(config, rewards.for_config(config), networks)

  @property
  def reward_specs(self) -> Tuple[Optional[reward_lib.RewardSpec], ...]:
    """The rewards that are made of the extras' `features`, one for each.

    The features are the agent's own in pre-training, and those of its K
    behaviors in transfer. None stands for features that no reward is made of.
    """
    if self.intrinsic is not None:
      return (reward_lib.RewardSpec(self.intrinsic.config),)
    return tuple(behavior.intrinsic() for behavior in self.behaviors)

  @property
  def replay_shapes(self) -> fields.ReplayShapes:
    """What the replay must know of environment and network."""
    height, width, _ = self.spec.observation_shape
    return fields.ReplayShapes(
      frame=(height, width, self.spec.frame_channels),
      num_stacked=self.spec.num_stacked,
      lstm_size=self.config.network.lstm_size,
    )

  def actor_core(self, *, evaluation: bool = False) -> types.ActorCore:
    """Builds the actor core of one environment.

    Args:
      evaluation: whether to leave flights out, as evaluators do.
    """
    core = r2d2_actor.make_r2d2(self.network)
    if self.intrinsic is not None:
      core = ngu_actor.wrap(core, self.intrinsic.networks)
    if self.transfer is not None:
      core = bt_actor.wrap(
        core,
        self._behavior_cores,
        self.transfer,
        num_actions=self.spec.num_actions,
        behavior_weights=self.behavior_weights,
        evaluation=evaluation,
      )
    return core

  def actor_params(
    self, variables: Variables, behaviors: Tuple[types.Params, ...] = ()
  ) -> types.Params:
    """Arranges parameters as the actor core takes them.

    Args:
      variables: the variables that the learner publishes.
      behaviors: the parameters of the K behaviors.
    """
    params = variables.agent
    if self.intrinsic is not None:
      params = ngu_actor.arrange_params(params, variables.intrinsic)
    if self.transfer is not None:
      params = bt_actor.BTParams(params, behaviors)
    return params

  def actor_input(
    self, inputs: types.AgentInput, host_inputs: Tuple[Any, ...]
  ) -> Any:
    """Arranges an input as the actor core takes it.

    Args:
      inputs: what the agent sees.
      host_inputs: what the host sides of the K behaviors supply.
    """
    return (
      inputs if self.transfer is None else bt_actor.BTInput(inputs, host_inputs)
    )


def spec_by_name(names: str, *, num_stacked: int = 0) -> EnvironmentSpec:
  """Returns the spec of an environment, which is made for a moment.

  Args:
    names: one name that `environments.make` takes, or several of environments
      that share a spec, separated by commas.
    num_stacked: the number of frames in an observation, as `make` takes it.

  Raises:
    ValueError: if there is no such environment, or if specs differ.
  """
  specs = []
  for name in environments.names_in(names):
    with contextlib.closing(
      environments.make(name, num_stacked=num_stacked, seed=0)
    ) as environment:
      specs.append(spec_of(environment, names))
    if specs[-1] != specs[0]:
      raise ValueError(
        f'env={names!r}: {name} has observations {specs[-1].observation_shape} '
        f'and {specs[-1].num_actions} actions, but the environments before it '
        f'have {specs[0].observation_shape} and {specs[0].num_actions}. Choose '
        'environments with equal spaces.'
      )
  return specs[0]


def moved(agent: Agent, env: str) -> Agent:
  """Puts an agent into another environment with equal spaces.

  Raises:
    ValueError: if there is no such environment, or its spaces are others.
  """
  had = agent.spec
  spec = spec_by_name(env, num_stacked=had.num_stacked)
  if spec._replace(name='') != had._replace(name=''):
    raise ValueError(
      f'env={env!r} has observations {spec.observation_shape} and '
      f'{spec.num_actions} actions, but {had.name} had {had.observation_shape} '
      f'and {had.num_actions}: choose an environment with the same.'
    )
  return agent.named(env)


def spec_of(environment: Any, name: str) -> EnvironmentSpec:
  """Reads the spec of a dm_env environment of `bt_acme.environments`."""
  return EnvironmentSpec(
    name=name,
    observation_shape=tuple(environment.observation_spec().shape),
    num_stacked=getattr(environment, 'num_stacked', 1),
    num_actions=int(environment.action_spec().num_values),
  )
