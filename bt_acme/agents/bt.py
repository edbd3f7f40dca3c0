"""`BTBuilder`: Behavior Transfer around an agent, ours or one of dm-acme."""

import dataclasses
from typing import Optional, Sequence, Tuple, Union, overload

from acme import specs

from bt_acme import assembly
from bt_acme import config as config_lib
from bt_acme.acting import behavior as behavior_lib
from bt_acme.agents import builders as builders_lib
from bt_acme.agents.external import builder as external


@overload
def BTBuilder(
  base_builder: builders_lib.R2D2Builder,
  behaviors: Sequence[behavior_lib.Behavior],
  config: config_lib.TransferConfig = ...,
  *,
  behavior_weights: Sequence[float] = ...,
  environment_spec: Optional[specs.EnvironmentSpec] = ...,
) -> builders_lib.AgentBuilder: ...


@overload
def BTBuilder(
  base_builder: external.BaseBuilder,
  behaviors: Sequence[behavior_lib.Behavior],
  config: config_lib.TransferConfig = ...,
  *,
  behavior_weights: Sequence[float] = ...,
  environment_spec: Optional[specs.EnvironmentSpec] = ...,
) -> external.WrappedBuilder: ...


# One name stands for two builders, and is spelled as Acme spells a builder.
def BTBuilder(
  base_builder: Union[builders_lib.R2D2Builder, external.BaseBuilder],
  behaviors: Sequence[behavior_lib.Behavior],
  config: config_lib.TransferConfig = config_lib.TransferConfig(),
  *,
  behavior_weights: Sequence[float] = (),
  environment_spec: Optional[specs.EnvironmentSpec] = None,
) -> Union[builders_lib.AgentBuilder, external.WrappedBuilder]:
  """Puts behavior transfer around a builder (Campos et al. 2021,
  arXiv:2102.13515), ours or any of dm-acme.

  Args:
    base_builder: the builder of the agent that learns: an `agents.R2D2Builder`;
      or a function that makes a builder of dm-acme for an environment spec,
      which has one more action per behavior if there is the extra action; or,
      for flights alone, a builder of dm-acme itself. A Q-network is checked to
      have as many outputs as there are choices. Other networks, such as PPO's,
      are not: their choices are checked one by one while they act.
    behaviors: what the agent brings along; each has an extra action of its own.
    config: the settings of flights and extra actions.
    behavior_weights: the weights with which a flight draws its behavior;
      uniform if empty.
    environment_spec: what `acme.make_environment_spec` returns; our own builder
      knows its environment and needs none.

  Returns:
    A builder of the agent with behavior transfer. Transitions collected with a
    behavior are duplicated if the learner is ours; learners of dm-acme stay as
    they are.
  """
  behaviors = _checked(behaviors)
  if not isinstance(config, config_lib.TransferConfig):
    raise ValueError(
      f'config is a {type(config).__name__}: give the TransferConfig alone '
      '(BTConfig().transfer), because base_builder has the settings of the '
      'agent.'
    )
  if isinstance(base_builder, builders_lib.R2D2Builder):
    return _around_ours(base_builder.agent, behaviors, config, behavior_weights)
  if isinstance(
    base_builder, (builders_lib.AgentBuilder, external.WrappedBuilder)
  ):
    raise ValueError(
      f'base_builder={type(base_builder).__name__} cannot be wrapped: give '
      'agents.R2D2Builder or a builder of dm-acme, and all behaviors at once.'
    )
  if environment_spec is None:
    raise ValueError(
      'environment_spec=None: around a builder of dm-acme, pass '
      'acme.make_environment_spec(environment).'
    )
  return external.WrappedBuilder(
    base_builder,
    behaviors,
    config,
    environment_spec=environment_spec,
    behavior_weights=behavior_weights,
  )


def _checked(
  behaviors: Sequence[behavior_lib.Behavior],
) -> Tuple[behavior_lib.Behavior, ...]:
  """Returns the behaviors as a tuple, even if a generator makes them.

  Raises:
    ValueError: if anything else is among them.
  """
  if isinstance(behaviors, behavior_lib.Behavior):
    raise ValueError(
      f'behaviors is the single behavior {behaviors.name!r}: put it into a '
      'list.'
    )
  behaviors = tuple(behaviors)
  for behavior in behaviors:
    if not isinstance(behavior, behavior_lib.Behavior):
      raise ValueError(
        f'behaviors contains {behavior!r}, which is not a behavior: wrap a '
        'policy in bt_acme.behaviors.FromCallable.'
      )
  return behaviors


def _around_ours(
  base: assembly.Agent,
  behaviors: Sequence[behavior_lib.Behavior],
  config: config_lib.TransferConfig,
  behavior_weights: Sequence[float],
) -> builders_lib.AgentBuilder:
  """Returns the agent as BT, with its own settings and the transfer's."""
  groups = {
    field.name: getattr(base.config, field.name)
    for field in dataclasses.fields(config_lib.R2D2Config)
  }
  return builders_lib.AgentBuilder(
    assembly.Agent(
      config_lib.BTConfig(**groups, transfer=config),
      base.spec,
      tuple(behaviors),
      tuple(behavior_weights),
    )
  )
