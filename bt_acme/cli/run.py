"""What the scripts in `launch/` share: from flags to a running program."""

import dataclasses
import os
import sys
from typing import Any, List, Mapping, Optional, Tuple, Type, TypeVar

import jax
from absl import flags as absl_flags

from bt_acme import assembly, behaviors, environments
from bt_acme import config as config_lib
from bt_acme.agents import builders as builders_lib
from bt_acme.cli import flags
from bt_acme.config import presets
from bt_acme.config import run as run_config
from bt_acme.core import data_parallel, weight_transfer
from bt_acme.replay import memory_estimate
from bt_acme.runtime import program as program_lib
from bt_acme.runtime.engines import processes

FLAGS = absl_flags.FLAGS
_CONFIGS = {
  c.__name__: c
  for c in (config_lib.R2D2Config, config_lib.NGUConfig, config_lib.BTConfig)
}
Config = TypeVar('Config', bound=config_lib.R2D2Config)


def define(settings_class: type) -> None:
  """Defines the flags of a launch script.

  Args:
    settings_class: a configuration that has a `run` beside its groups.
  """
  absl_flags.DEFINE_string(
    'preset',
    'paper',
    "Other defaults than the paper's for the settings below: "
    + ', '.join(sorted(presets.PRESETS))
    + '.',
  )
  flags.define(settings_class)
  FLAGS.set_default('lp_launch_type', 'local_mp')
  for name in ('preset', 'lp_launch_type'):
    FLAGS.register_key_flag_for_module(sys.argv[0], FLAGS[name])


def settings(settings_class: Type[Config]) -> Config:
  """The flags' values, over the preset's, over the defaults.

  This process then leaves the accelerator to the processes to come, if any.
  """
  if FLAGS.lp_launch_type == 'local_mp':
    # JAX would take all memory of a GPU for weights to start from.
    jax.config.update('jax_platforms', 'cpu')
  preset = presets.get(FLAGS.preset)
  known = {
    field.name
    for group in dataclasses.fields(settings_class)
    for field in dataclasses.fields(group.default)  # type: ignore[arg-type]
  }
  return flags.from_flags(
    settings_class, {k: v for k, v in preset.items() if k in known}
  )


def config_of(config_class: Type[Config], all_settings: Any) -> Config:
  """The agent's part of a script's settings."""
  return config_class(
    **{
      field.name: getattr(all_settings, field.name)
      for field in dataclasses.fields(config_class)
    }
  )


_BUILT_IN = {
  'action_repeat': behaviors.ActionRepeat,
  'uniform': behaviors.Uniform,
}


@dataclasses.dataclass(frozen=True)
class BehaviorsConfig:
  """What the agent brings along.

  Attributes:
    behavior: folders that run_ngu.py exported, separated by commas; or
      `action_repeat` (one random action a flight) or `uniform`.
    behavior_weights: with which a flight draws one of several, separated by
      commas; uniform if empty.
  """

  behavior: str = ''
  behavior_weights: str = ''

  @property
  def weights(self) -> Tuple[float, ...]:
    """The numbers that `behavior_weights` lists."""
    if not self.behavior_weights:
      return ()
    try:
      return tuple(float(w) for w in self.behavior_weights.split(','))
    except ValueError as error:
      raise ValueError(
        f'behavior_weights={self.behavior_weights!r} must be numbers separated '
        'by commas.'
      ) from error


@dataclasses.dataclass(frozen=True)
class WeightsConfig:
  """Weights to start from.

  Attributes:
    init_from: folder of a behavior whose Q-network to start from; empty for
      fresh weights.
    init: `partial` (torso and LSTM) or `full` (the head too; fine-tuning is
      this without behavior transfer).
    extra_init: with `full`, the extra action's weights start `fresh` or as the
      `mean` of the others. The paper does not say.
  """

  init_from: str = ''
  init: str = 'full'
  extra_init: str = 'fresh'

  def __post_init__(self) -> None:
    for name, allowed in (
      ('init', ('full', 'partial')),
      ('extra_init', ('fresh', 'mean')),
    ):
      value, default = getattr(self, name), allowed[0]
      if value not in allowed:
        raise ValueError(f'{name}={value!r} is unknown: choose from {allowed}.')
      if value != default and not self.init_from:
        raise ValueError(
          f"{name}={value!r} says which weights to load, and init_from='' "
          'loads none: give a folder that run_ngu.py exported.'
        )


def make_behaviors(
  config: BehaviorsConfig, transfer: config_lib.TransferConfig
) -> List[behaviors.Behavior]:
  """The behaviors that `behavior` names.

  Raises:
    ValueError: if it names none, or one that cannot be loaded.
  """
  if not config.behavior:
    raise ValueError(
      "behavior='' names nothing to transfer: give a folder that run_ngu.py "
      f'exported, or one of {sorted(_BUILT_IN)}.'
    )
  made: List[behaviors.Behavior] = []
  for name in map(str.strip, config.behavior.split(',')):
    if name in _BUILT_IN:
      made.append(_BUILT_IN[name]())
    elif os.path.isdir(name):
      made.append(
        behaviors.Exported(
          name,
          epsilon=transfer.behavior_epsilon,
          reward_input=transfer.behavior_reward_input,
        )
      )
    else:
      raise ValueError(
        f'behavior={config.behavior!r}: {name!r} is neither a folder that '
        f'run_ngu.py exported nor one of {sorted(_BUILT_IN)}.'
      )
  return made


def initial_params(
  weights: WeightsConfig, agent: assembly.Agent, seed: int
) -> Any:
  """Parameters of the Q-network to start from; None for fresh ones.

  Raises:
    ValueError: if the folder cannot be read or holds another architecture.
  """
  if not weights.init_from:
    return None
  source = behaviors.Exported(weights.init_from, setting='init_from')
  source.validate(agent.spec.observation_shape, agent.spec.num_actions)
  had, has = (a.config.network.reward_input for a in (source.agent, agent))
  if had != has:
    raise ValueError(
      f'init_from={weights.init_from!r} was trained with reward_input={had!r}, '
      f'and this agent has reward_input={has!r}: set --reward_input={had}.'
    )
  try:
    return weight_transfer.transfer(
      source.variables.agent,
      agent.network.init(jax.random.key(seed)),
      init=weights.init,
      extra_init=weights.extra_init,
    )
  except ValueError as error:
    raise ValueError(
      f'init_from={weights.init_from!r}: {error} Set the sizes of the network '
      'to those it has there; --init=partial leaves out the head.'
    ) from error


def environment_spec(run: run_config.RunConfig) -> assembly.EnvironmentSpec:
  """The spec of the run's environment.

  Raises:
    ValueError: if there is no such environment.
  """
  environment = environments.make(
    run.env, num_stacked=run.num_stacked, seed=run.seed
  )
  try:
    return assembly.spec_of(environment, run.env)
  finally:
    environment.close()


def check(run: run_config.RunConfig, agent: assembly.Agent) -> None:
  """Raises ValueError for a run that could not do what it is meant to."""
  replay = agent.config.replay
  processes.check_launch_type(FLAGS.lp_launch_type)
  if os.environ.get('JAX_PLATFORMS') == 'cpu':  # Or the learner will see.
    data_parallel.make_shardings(agent.config.learner)
  if run.replay_port:
    processes.check_port_free(run.replay_port, setting='replay_port')
  memory_estimate.check(memory_estimate.estimate(replay, agent.replay_shapes))
  fillable = run.max_actor_steps // replay.sequence_period
  if fillable < replay.min_replay_size:
    raise ValueError(
      f'max_actor_steps={run.max_actor_steps} fill the replay with about '
      f'{fillable} sequences, fewer than min_replay_size='
      f'{replay.min_replay_size}: the learner would never start. Raise '
      'max_actor_steps, lower min_replay_size, or choose a smaller preset.'
    )


def launch(
  run: run_config.RunConfig,
  builder: builders_lib.AgentBuilder,
  *,
  initial_params: Any = None,
  identity: Optional[Mapping[str, Any]] = None,
) -> int:
  """Runs an agent's program to its end.

  Args:
    run: where, how many, how long.
    builder: of the agent.
    initial_params: of the Q-network, to start from.
    identity: what else tells this run from another in the same workdir.

  Returns:
    The process's exit code.
  """
  agent = builder.agent
  check(run, agent)
  resumed = run_config.claim_workdir(run, agent.config, identity)
  if run_config.is_completed(run):
    print(
      f'The run in {run.workdir} has taken its {run.max_actor_steps:,} actor '
      'steps: raise max_actor_steps to go on.'
    )
    return 0
  print(
    f'{"Resuming" if resumed else "Starting"} {type(agent.config).__name__} '
    f'on {run.env} in {run.workdir}: {run.num_actors} actors of '
    f'{run.envs_per_actor} environments, {run.max_actor_steps:,} actor steps.'
  )
  print(memory_estimate.estimate(agent.config.replay, agent.replay_shapes))
  program = program_lib.make_program(
    run, builder, initial_params=initial_params
  )
  code = processes.launch(
    program,
    workdir=run.workdir,
    launch_type=FLAGS.lp_launch_type,
    environments={
      label: variables
      for label, variables in program_lib.PROCESS_ENVIRONMENTS.items()
      if label in program.groups
    },
    ports={'replay': run.replay_port} if run.replay_port else None,
    main_label=program_lib.COORDINATOR,
    checked_labels=('learner',),
  )
  if code == 0:
    run_config.mark_completed(run)
  return code


def agent_of_run(workdir: str) -> assembly.Agent:
  """The agent of the run in a workdir.

  Raises:
    ValueError: if there is no run.
  """
  identity = run_config.read_identity(workdir)
  config = config_lib.from_dict(_CONFIGS[identity['agent']], identity['config'])
  run = run_config.RunConfig(
    env=identity['run']['env'], num_stacked=identity['run']['num_stacked']
  )
  transferred: Any = ()
  weights: Tuple[float, ...] = ()
  if isinstance(config, config_lib.BTConfig):
    behaviors_config = BehaviorsConfig(**identity['behaviors'])
    transferred = make_behaviors(behaviors_config, config.transfer)
    weights = behaviors_config.weights
  return assembly.Agent(
    config, environment_spec(run), tuple(transferred), weights
  )
