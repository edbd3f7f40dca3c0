"""`BTBuilder`: behavior transfer for an agent of this package or of dm-acme."""

from collections.abc import Sequence
from typing import overload

from acme import specs

from bt_acme import assembly
from bt_acme import config as config_lib
from bt_acme.acting import behavior as behavior_lib
from bt_acme.agents import builders as builders_lib
from bt_acme.agents.external import builder as external
from bt_acme.config import names

_DEFAULTS = config_lib.TransferConfig()
# Settings that need the Q-values or the learner of this package's agents.
_NEED_VALUES = (
  'flight_law',
  'choice_rule',
  'kickstarting',
  'behavior_roles',
  'extra_action_margin',
)


@overload
def BTBuilder(
  base_builder: builders_lib.R2D2Builder,
  behaviors: Sequence[behavior_lib.Behavior],
  config: config_lib.TransferConfig = ...,
  *,
  behavior_weights: Sequence[float] = ...,
  environment_spec: specs.EnvironmentSpec | None = ...,
) -> builders_lib.AgentBuilder: ...


@overload
def BTBuilder(
  base_builder: external.BaseBuilder,
  behaviors: Sequence[behavior_lib.Behavior],
  config: config_lib.TransferConfig = ...,
  *,
  behavior_weights: Sequence[float] = ...,
  environment_spec: specs.EnvironmentSpec | None = ...,
) -> external.WrappedBuilder: ...


# Acme's builders are classes; this function is named like one, but returns one
# of two classes.
def BTBuilder(
  base_builder: builders_lib.R2D2Builder | external.BaseBuilder,
  behaviors: Sequence[behavior_lib.Behavior],
  config: config_lib.TransferConfig = config_lib.TransferConfig(),
  *,
  behavior_weights: Sequence[float] = (),
  environment_spec: specs.EnvironmentSpec | None = None,
) -> builders_lib.AgentBuilder | external.WrappedBuilder:
  """Adds behavior transfer to a builder of this package or of dm-acme.

  The method is from Campos et al. 2021, arXiv:2102.13515.

  Args:
    base_builder: the builder of the agent that learns. Pass an
      `agents.R2D2Builder`, or a function from an environment spec to a builder
      of dm-acme. With extra actions, this spec has an additional action for
      each behavior; without, the builder of dm-acme itself can be passed too.
      For Q-networks, the number of outputs is checked in advance; for other
      networks, each choice is checked when the agent acts. The agent must learn
      off-policy, because it does not select all actions itself.
    behaviors: the behaviors to transfer; each has its own extra action.
    config: the settings of flights and extra actions.
    behavior_weights: the weights with which a flight draws its behavior;
      uniform if empty.
    environment_spec: the result of `acme.make_environment_spec`. Required for
      builders of dm-acme; `agents.R2D2Builder` knows its environment.

  Returns:
    A builder of the agent with behavior transfer. The learner of this package
    duplicates the transitions that a behavior collected; learners of dm-acme
    remain unchanged.

  Raises:
    ValueError: if an argument is invalid.

  Example:
    ```python
    from bt_acme import agents, behaviors, config, environments

    environment = environments.make('Chain-49', seed=0)
    spec = agents.spec_of(environment, 'Chain-49')
    base_builder = agents.R2D2Builder(config.R2D2Config(), spec)
    builder = agents.BTBuilder(base_builder, [behaviors.ActionRepeat()])
    ```
  """
  behaviors = _checked(behaviors)
  if not isinstance(config, config_lib.TransferConfig):
    raise ValueError(
      f'config is a {type(config).__name__} instead of a TransferConfig. Pass '
      'only the group BTConfig().transfer; base_builder already has all other '
      'settings of the agent.'
    )
  # Actors of a run share their scores, and see the last reward of an episode.
  for name, value in (
    ('flight_priorities', 'learned'),
    ('flight_law', 'jump_start'),
  ):
    if getattr(config, name) == value:
      raise ValueError(
        f'{name}={value!r} needs a run of bt_acme. Use bt_acme.transfer or '
        f'run_bt.py, or choose {getattr(_DEFAULTS, name)!r}.'
      )
  for name in ('behavior_epsilon', 'behavior_reward_input'):
    value, argument = getattr(config, name), name.removeprefix('behavior_')
    if value != getattr(_DEFAULTS, name):
      raise ValueError(
        f'{name}={value!r} applies to runs of bt_acme. Pass '
        f'behaviors.Exported(FOLDER, {argument}={value!r}) to BTBuilder.'
      )
  if isinstance(base_builder, builders_lib.R2D2Builder):
    base = base_builder.agent
    groups = vars(names.part(base.config, config_lib.R2D2Config))
    whole = config_lib.BTConfig(**groups, transfer=config)
    return builders_lib.AgentBuilder(
      assembly.Agent(whole, base.spec, behaviors, tuple(behavior_weights))
    )
  if isinstance(
    base_builder, (builders_lib.AgentBuilder, external.WrappedBuilder)
  ):
    raise ValueError(
      f'base_builder={type(base_builder).__name__} cannot be wrapped. Pass an '
      'agents.R2D2Builder or a builder of dm-acme, and pass all behaviors in a '
      'single call.'
    )
  for name in _NEED_VALUES:
    value, default = getattr(config, name), getattr(_DEFAULTS, name)
    if value != default:
      raise ValueError(
        f'{name}={value!r} needs an agents.R2D2Builder. Choose {default!r} for '
        'an agent of dm-acme.'
      )
  if not isinstance(environment_spec, specs.EnvironmentSpec):
    raise ValueError(
      f'environment_spec={environment_spec!r}, but a builder of dm-acme needs '
      'the spec of dm-acme. Pass acme.make_environment_spec(environment).'
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
) -> tuple[behavior_lib.Behavior, ...]:
  """Checks the behaviors and returns them as a tuple.

  Raises:
    ValueError: if any element is not a behavior.
  """
  if isinstance(behaviors, behavior_lib.Behavior):
    raise ValueError(
      f'behaviors is the single behavior {behaviors.name!r}. Pass a list of '
      'behaviors.'
    )
  behaviors = tuple(behaviors)
  for behavior in behaviors:
    if not isinstance(behavior, behavior_lib.Behavior):
      raise ValueError(
        f'behaviors contains {behavior!r}, which is not a behavior. Wrap '
        'policies in bt_acme.behaviors.FromCallable.'
      )
  return behaviors
