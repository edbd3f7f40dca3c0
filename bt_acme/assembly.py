"""Assembles agents from their configuration and environment.

This module combines the parts of `core` into R2D2, NGU and BT. Both the Acme
builders and runs in one process use it.
"""

import contextlib
import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import numpy as np
import numpy.typing as npt

from bt_acme import config as config_lib
from bt_acme import environments
from bt_acme.acting import behavior as behavior_lib
from bt_acme.config import names as names_lib
from bt_acme.core import epsilon, r2d2_actor, types, weight_loading
from bt_acme.core import networks as networks_lib
from bt_acme.core.behavior_transfer import behavior_core, bt_actor, flights
from bt_acme.core.intrinsic import networks as intrinsic_lib
from bt_acme.core.intrinsic import ngu_actor
from bt_acme.core.intrinsic import reward_statistics as reward_lib
from bt_acme.environments import registry, vector
from bt_acme.replay import fields


class EnvironmentSpec(NamedTuple):
  """The properties of an environment that an agent depends on.

  Attributes:
    name: a name for `environments.make`, or several separated by commas.
    observation_shape: (H, W, C * S), the shape of a uint8 observation.
    num_stacked: S, the number of frames in an observation.
    num_actions: A, the number of actions.

  Example:
    ```python
    from bt_acme import agents

    pong = agents.EnvironmentSpec(
      'pong', (84, 84, 4), num_stacked=4, num_actions=18
    )
    assert pong.frame_channels == 1
    ```
  """

  name: str
  observation_shape: tuple[int, int, int]
  num_stacked: int
  num_actions: int

  @property
  def frame_channels(self) -> int:
    """C, the number of channels of one frame."""
    return self.observation_shape[-1] // self.num_stacked


class Variables(NamedTuple):
  """The parameters that the learner publishes and actors fetch."""

  agent: types.Params
  intrinsic: types.Params

  @classmethod
  def fetch(cls, source: Any) -> 'Variables':
    """Fetches the parameters from a learner, an `acme.VariableSource`."""
    return cls(*source.get_variables(list(cls._fields)))


class Learned(NamedTuple):
  """The policy that a run has learned so far.

  Attributes:
    actor_steps: the number of actor steps taken.
    variables: the parameters, as NumPy arrays.
    statistics: the statistics of the intrinsic reward, merged over the
      environments; None for an agent without one.
  """

  actor_steps: int
  variables: Variables
  statistics: Any | None


@dataclasses.dataclass(frozen=True, eq=False)
class Agent:
  """An R2D2, NGU or BT agent.

  Agents are equal if their settings are, and if their behaviors are the same
  objects.

  Attributes:
    config: an R2D2Config, NGUConfig or BTConfig, which determines the kind of
      agent.
    spec: the environment's spec.
    behaviors: the behaviors that BT transfers.
    behavior_weights: the relative probability that a flight uses each behavior;
      empty for equal probabilities.
  """

  config: config_lib.R2D2Config
  spec: EnvironmentSpec
  behaviors: tuple[behavior_lib.Behavior, ...] = ()
  behavior_weights: tuple[float, ...] = ()

  def __post_init__(self) -> None:
    if (self.transfer is not None) != bool(self.behaviors):
      raise ValueError(
        f'{type(self.config).__name__} does not fit the number of behaviors, '
        f'{len(self.behaviors)}. Pass at least one behavior with BTConfig, and '
        'none with R2D2Config or NGUConfig.'
      )
    networks_lib.torso_kind(
      self.config.network.torso, self.spec.observation_shape
    )
    if (
      self.transfer is not None
      and self.transfer.kickstarts
      and not self.transfer.flights
      and len(self.behaviors) > 1
    ):
      raise ValueError(
        f'kickstarting={self.transfer.kickstarting} with flights=False learns '
        f'from one behavior, but there are {len(self.behaviors)}, and only '
        'flights draw among them. Pass one behavior, or set flights=True.'
      )
    for behavior in self.behaviors:
      behavior.validate(self.spec.observation_shape, self.spec.num_actions)
    if self.behaviors:
      _ = self.flight_weights
    _ = self._behavior_cores  # Checks the actions of the behaviors.

  def _key(self) -> tuple[Any, ...]:
    identities = tuple(map(id, self.behaviors))
    return self.config, self.spec, identities, self.behavior_weights

  def __eq__(self, other: object) -> bool:
    return isinstance(other, Agent) and self._key() == other._key()

  def __hash__(self) -> int:
    return hash(self._key())

  def __getstate__(self) -> dict[str, Any]:
    """Omits the networks, which every process creates for itself."""
    return {name: vars(self)[name] for name in self.__dataclass_fields__}

  def named(self, name: str) -> 'Agent':
    """Returns this agent for another environment with equal shapes.

    Both agents share their networks, and nothing is validated again. Agents
    share compiled functions if they are equal once both are named ''.

    Args:
      name: the name of the other environment.
    """
    renamed = object.__new__(Agent)
    renamed.__dict__.update(self.__dict__, spec=self.spec._replace(name=name))
    return renamed

  @property
  def transfer(self) -> config_lib.TransferConfig | None:
    """The settings of behavior transfer; None for other agents."""
    if isinstance(self.config, config_lib.BTConfig):
      return self.config.transfer
    return None

  @property
  def learns_priorities(self) -> bool:
    """Whether flights draw behaviors with learned priorities."""
    return self.transfer is not None and self.transfer.learns_priorities

  @property
  def flight_weights(self) -> tuple[float, ...]:
    """The weight, at most 1, with which flights draw each of K behaviors."""
    assert self.transfer is not None
    return flights.relative_weights(
      self.transfer, self.behavior_weights, len(self.behaviors)
    )

  @property
  def num_extra_actions(self) -> int:
    """The number of extra actions: one per behavior that has this role."""
    if self.transfer is None:
      return 0
    return len(self.transfer.extra_behaviors(len(self.behaviors)))

  @functools.cached_property
  def _behavior_cores(self) -> tuple[behavior_core.BehaviorCore, ...]:
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
  def intrinsic(self) -> intrinsic_lib.IntrinsicNetworks | None:
    """The intrinsic reward of NGU and its networks; None for other agents."""
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
  def reward_specs(self) -> tuple[reward_lib.RewardSpec | None, ...]:
    """The intrinsic reward of each entry of the extras' `features`.

    The features come from the agent in pre-training, and from its K behaviors
    in transfer. None stands for features without a reward.
    """
    if self.intrinsic is not None:
      return (reward_lib.RewardSpec(self.intrinsic.config),)
    return tuple(behavior.intrinsic() for behavior in self.behaviors)

  @property
  def replay_layout(self) -> fields.ReplayLayout:
    """The settings and shapes that the replay depends on."""
    height, width, _ = self.spec.observation_shape
    return fields.ReplayLayout(
      self.config.replay,
      frame=(height, width, self.spec.frame_channels),
      num_stacked=self.spec.num_stacked,
      lstm_size=self.config.network.lstm_size,
      has_proposals=self.transfer is not None and self.transfer.kickstarts,
    )

  @property
  def variable_shapes(self) -> Variables:
    """The shapes and dtypes of the parameters that the learner publishes."""

    def init(key: types.PRNGKey) -> Variables:
      intrinsic = {} if self.intrinsic is None else self.intrinsic.init(key)
      return Variables(self.network.init(key), intrinsic)

    return jax.eval_shape(init, jax.random.key(0))

  def epsilons(self, num_environments: int) -> npt.NDArray[np.float32]:
    """Returns epsilon of each environment of a run, float32 [N]."""
    acting = self.config.acting
    return epsilon.ladder(
      num_environments, base=acting.epsilon_base, alpha=acting.epsilon_alpha
    )

  def actor_core(self, *, evaluation: bool = False) -> types.ActorCore:
    """Creates the actor core for one environment.

    Args:
      evaluation: whether to disable flights, as evaluators do.
    """
    if self.transfer is not None:
      temperature = 0.0 if evaluation else self.transfer.boltzmann_temperature
      return bt_actor.wrap(
        r2d2_actor.make_r2d2(
          self.network,
          extra_action_margin=self.transfer.extra_action_margin,
          choice_temperature=temperature,
        ),
        self._behavior_cores,
        self.transfer,
        num_actions=self.spec.num_actions,
        behavior_weights=self.behavior_weights,
        evaluation=evaluation,
        learner=self.config.learner,
      )
    core = r2d2_actor.make_r2d2(self.network)
    if self.intrinsic is not None:
      core = ngu_actor.wrap(core, self.intrinsic)
    return core

  def behavior_params(self) -> tuple[types.Params, ...]:
    """Returns the current parameters of the K behaviors, on the device."""
    return tuple(jax.device_put(each.params()) for each in self.behaviors)

  def actor_params(
    self, variables: Variables, behaviors: tuple[types.Params, ...] = ()
  ) -> types.Params:
    """Combines parameters for the actor core.

    Args:
      variables: the parameters published by the learner.
      behaviors: the parameters of the K behaviors.
    """
    if self.transfer is not None:
      return bt_actor.BTParams(variables.agent, behaviors)
    if self.intrinsic is not None:
      return ngu_actor.arrange_params(variables.agent, variables.intrinsic)
    return variables.agent


def spec_by_name(
  names: str, *, num_stacked: int = 0, expected: EnvironmentSpec | None = None
) -> EnvironmentSpec:
  """Returns the spec of an environment, which is created temporarily.

  Args:
    names: the name of an environment, or several separated by commas.
    num_stacked: the number of frames in an observation; see
      `environments.make`.
    expected: a spec that the environments must have, except for its name.

  Raises:
    ValueError: if a name is unknown, or if the specs differ.
  """
  for name in environments.names_in(names):
    with contextlib.closing(
      environments.make(name, num_stacked=num_stacked, seed=0)
    ) as environment:
      spec = spec_of(environment, name)
    expected = expected or spec
    if spec != expected._replace(name=name):
      raise ValueError(
        f'env={names!r}: {name} has observations {spec.observation_shape} and '
        f'{spec.num_actions} actions, but {expected.name} has '
        f'{expected.observation_shape} and {expected.num_actions}. Choose '
        'environments with equal observation shapes and numbers of actions.'
      )
  return spec._replace(name=names)


def moved(agent: Agent, env: str) -> Agent:
  """Returns an agent for another environment with an equal spec.

  Args:
    agent: the agent.
    env: the name of the other environment; empty for the agent's own.

  Raises:
    ValueError: if the name is unknown, or if the specs differ.
  """
  if not env:
    return agent
  spec_by_name(env, num_stacked=agent.spec.num_stacked, expected=agent.spec)
  return agent.named(env)


def without_behaviors(
  agent: Agent, variables: Variables
) -> tuple[Agent, Variables]:
  """Returns the R2D2 agent that takes the primitive actions of a BT agent.

  Args:
    agent: an agent; one without behaviors is returned as it is.
    variables: its parameters.
  """
  if agent.transfer is None:
    return agent, variables
  params = weight_loading.without_extra_actions(
    variables.agent, agent.spec.num_actions
  )
  config = names_lib.part(agent.config, config_lib.R2D2Config)
  return Agent(config, agent.spec), variables._replace(agent=params)


def spec_of(environment: Any, name: str) -> EnvironmentSpec:
  """Returns the spec of an environment of `bt_acme.environments`.

  Example:
    ```python
    from bt_acme import agents, environments

    environment = environments.make('Chain-49', seed=0)
    spec = agents.spec_of(environment, 'Chain-49')
    ```
  """
  registry.check_specs(environment, name)
  return EnvironmentSpec(name, *vector.space_of(environment))
