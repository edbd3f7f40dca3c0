"""What an agent is made of, given its configuration and its environment.

The one place where R2D2, NGU and BT are put together from the core; builders
and the one-process runner both start here.
"""

import dataclasses
import functools
from typing import Any, Dict, NamedTuple, Optional, Tuple

import jax
import numpy as np

from bt_acme import config as config_lib
from bt_acme.acting import behavior as behavior_lib
from bt_acme.core import networks as networks_lib
from bt_acme.core import r2d2_actor, types
from bt_acme.core.behavior_transfer import bt_actor
from bt_acme.core.intrinsic import networks as intrinsic_lib
from bt_acme.core.intrinsic import ngu_actor
from bt_acme.replay import fields


class EnvironmentSpec(NamedTuple):
  """What an agent must know of its environment.

  Attributes:
    name: as `environments.make` takes it.
    observation_shape: (H, W, C * S), uint8.
    num_stacked: S, frames stacked in an observation.
    num_actions: A.
  """

  name: str
  observation_shape: Tuple[int, int, int]
  num_stacked: int
  num_actions: int

  @property
  def frame_channels(self) -> int:
    """C, channels of one frame."""
    return self.observation_shape[-1] // self.num_stacked


@dataclasses.dataclass(frozen=True)
class Agent:
  """R2D2, NGU or BT, by the class of its configuration.

  Attributes:
    config: R2D2Config, NGUConfig or BTConfig.
    spec: of the environment.
    behaviors: that BT brings along.
    behavior_weights: with which a flight draws one; uniform if empty.
  """

  config: config_lib.R2D2Config
  spec: EnvironmentSpec
  behaviors: Tuple[behavior_lib.Behavior, ...] = ()
  behavior_weights: Tuple[float, ...] = ()

  def __post_init__(self) -> None:
    if isinstance(self.config, config_lib.BTConfig) != bool(self.behaviors):
      raise ValueError(
        'behaviors and BTConfig go together: BTConfig needs at least one '
        'behavior, R2D2Config and NGUConfig take none.'
      )
    networks_lib.torso_kind(
      self.config.network.torso, self.spec.observation_shape
    )
    for behavior in self.behaviors:
      behavior.validate(self.spec.observation_shape, self.spec.num_actions)
    self.actor_core()  # Whatever does not fit together says so here.

  def __getstate__(self) -> Dict[str, Any]:
    """For other processes: without the networks, which each makes itself."""
    return {
      field.name: getattr(self, field.name)
      for field in dataclasses.fields(self)
    }

  @property
  def transfer(self) -> Optional[config_lib.TransferConfig]:
    """How behaviors are transferred; None without behavior transfer."""
    if isinstance(self.config, config_lib.BTConfig):
      return self.config.transfer
    return None

  @property
  def num_extra_actions(self) -> int:
    """K with the extra action, else 0."""
    if self.transfer is None or not self.transfer.extra_action:
      return 0
    return len(self.behaviors)

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
  def intrinsic(self) -> Optional[intrinsic_lib.IntrinsicNetworks]:
    """The networks behind the intrinsic reward, in pre-training."""
    if not isinstance(self.config, config_lib.NGUConfig):
      return None
    return intrinsic_lib.make_networks(
      self.config.intrinsic,
      observation_shape=self.spec.observation_shape,
      frame_channels=self.spec.frame_channels,
      num_actions=self.spec.num_actions,
      torso=self.config.network.torso,
    )

  @property
  def replay_shapes(self) -> fields.ReplayShapes:
    """What the replay must know."""
    height, width, _ = self.spec.observation_shape
    return fields.ReplayShapes(
      frame=(height, width, self.spec.frame_channels),
      num_stacked=self.spec.num_stacked,
      lstm_size=self.config.network.lstm_size,
    )

  def actor_core(self, *, evaluation: bool = False) -> types.ActorCore:
    """Acting in one environment; evaluators leave flights out."""
    core = r2d2_actor.make_r2d2(self.network)
    if self.intrinsic is not None:
      core = ngu_actor.wrap(core, self.intrinsic)
    if isinstance(self.config, config_lib.BTConfig):
      observation = jax.ShapeDtypeStruct(self.spec.observation_shape, np.uint8)
      core = bt_actor.wrap(
        core,
        [
          behavior_lib.make_core(behavior, self.spec.num_actions, observation)
          for behavior in self.behaviors
        ],
        self.config.transfer,
        num_actions=self.spec.num_actions,
        behavior_weights=self.behavior_weights,
        evaluation=evaluation,
      )
    return core

  @property
  def intrinsic_config(self) -> Optional[config_lib.IntrinsicConfig]:
    """Settings of the intrinsic reward; None without one."""
    if isinstance(self.config, config_lib.NGUConfig):
      return self.config.intrinsic
    return None


class Variables(NamedTuple):
  """What the learner publishes and actors fetch."""

  agent: types.Params
  intrinsic: types.Params


def ngu_params(variables: Variables) -> ngu_actor.NGUParams:
  """Arranges published variables as NGU's actor core takes them."""
  intrinsic = variables.intrinsic
  return ngu_actor.NGUParams(
    agent=variables.agent,
    embedding=intrinsic.get('embedding', {}),
    rnd={k: v for k, v in intrinsic.items() if k.startswith('rnd')},
  )


def spec_of(environment: Any, name: str) -> EnvironmentSpec:
  """The spec of a dm_env environment made by `bt_acme.environments`."""
  return EnvironmentSpec(
    name=name,
    observation_shape=tuple(environment.observation_spec().shape),
    num_stacked=getattr(environment, 'num_stacked', 1),
    num_actions=int(environment.action_spec().num_values),
  )
