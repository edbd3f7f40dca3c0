"""Training in one process: `pretrain`, `train` and `transfer`."""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bt_acme import assembly, behaviors
from bt_acme import config as config_lib
from bt_acme.api import banks, runs
from bt_acme.config import checks, names, presets
from bt_acme.config import run as run_config
from bt_acme.core import networks
from bt_acme.launching import initial_weights, named_behaviors, recorded_agent
from bt_acme.runtime.engines.in_process import Callback

BehaviorLike = runs.PathLike | behaviors.Behavior

# The settings of the run that `**settings` may contain. All others are separate
# arguments or apply only to runs of several processes.
RUN_SETTINGS = (
  *('num_stacked', 'evaluation_period', 'evaluation_episodes'),
  *('checkpoint_period', 'num_evaluators', 'snapshot_steps'),
  'max_episode_rows',
)


# The public functions pass all their arguments on by name, as `locals()`.
def pretrain(
  env: str,
  *,
  max_actor_steps: int,
  seed: int = 0,
  preset: str = 'auto',
  num_environments: int = 16,
  workdir: runs.PathLike = '',
  progress: str = 'auto',
  callbacks: Sequence[Callback] = (),
  **settings: Any,
) -> runs.Run:
  """Pre-trains an exploration policy without the environment's reward.

  The agent is NGU: R2D2 with Retrace and an intrinsic reward. An interrupt
  (Ctrl-C, or the stop button of a notebook) ends the run early; the result so
  far is returned, and `Run.resume` continues it. After SIGTERM or SIGHUP, the
  run saves its state and ends the program: SystemExit is raised with code 143
  or 129.

  Args:
    env: the name of an environment: an Atari game, a MiniGrid ID, or a name
      passed to `register_environment`. Several names, separated by commas, are
      assigned to the environments in rotation; their observations and actions
      must have equal shapes.
    max_actor_steps: the budget, summed over all environments. On Atari, an
      actor step is 4 frames.
    seed: the random seed; it fully determines the run on one processor type
      with one set of package versions.
    preset: the defaults of all settings: a name in `bt_acme.config.presets`, or
      `auto`, which selects `minigrid` for small observations and `atari_small`
      for others; `transfer` selects `minigrid_pretrained` for small
      observations if one of the behaviors was pre-trained for at least 500,000
      actor steps.
    num_environments: the number of environments that are stepped in parallel.
    workdir: the directory for logs, checkpoints and the behavior. The same call
      with the same directory resumes the run. Empty for a temporary directory,
      which is deleted when the returned run is no longer in use.
    progress: `auto` to show a progress bar, `off` to show nothing.
    callbacks: functions that are called after each iteration with a dictionary
      of `actor_steps`, `learner_steps`, `replay_size` and, once available,
      `episode_return` (the mean of the last 100 episodes) and
      `evaluator_return`. If a callback returns True, the run stops.
    **settings: any other settings, by the names of their flags.

  Returns:
    The finished or stopped run.

  Raises:
    ValueError: before any computation, if an argument is unknown or invalid, or
      if the workdir belongs to another run.

  Example:
    ```python
    # Takes about two minutes on two cores.
    ngu = bt_acme.pretrain(
      'MiniGrid-FourRooms-v0:no_goal',
      max_actor_steps=40_000,
      workdir='runs/ngu',
      intrinsic_reward='rnd',
    )
    behavior = ngu.export('runs/explorer')
    ```
  """
  return prepare(config_lib.NGUConfig, **locals()).resume()


def train(
  env: str,
  *,
  max_actor_steps: int,
  init_from: runs.PathLike | behaviors.Exported = '',
  init: str = 'full',
  seed: int = 0,
  preset: str = 'auto',
  num_environments: int = 16,
  workdir: runs.PathLike = '',
  progress: str = 'auto',
  callbacks: Sequence[Callback] = (),
  **settings: Any,
) -> runs.Run:
  """Trains R2D2 with Peng's Q(lambda) on a task, without behavior transfer.

  Args:
    env: see `pretrain`.
    max_actor_steps: see `pretrain`.
    init_from: a behavior whose weights initialize the Q-network (fine-tuning),
      or its directory; empty for random weights.
    init: the weights to copy: `full` for all; `partial` for the torso and the
      LSTM only.
    seed: see `pretrain`.
    preset: see `pretrain`.
    num_environments: see `pretrain`.
    workdir: see `pretrain`.
    progress: see `pretrain`.
    callbacks: see `pretrain`.
    **settings: see `pretrain`.

  Returns:
    The run.

  Raises:
    ValueError: see `pretrain`.

  Example:
    ```python
    # Takes about four minutes on two cores.
    task = 'MiniGrid-FourRooms-v0:fixed'
    r2d2 = bt_acme.train(task, max_actor_steps=40_000)
    fine_tuned = bt_acme.train(
      task,
      max_actor_steps=40_000,
      init_from=bt_acme.load_behavior('minigrid-explorer'),
    )
    ```
  """
  return prepare(config_lib.R2D2Config, **locals()).resume()


def transfer(
  env: str,
  behavior: BehaviorLike | Sequence[BehaviorLike] | banks.Bank,
  *,
  max_actor_steps: int,
  behavior_weights: Sequence[float] = (),
  init_from: runs.PathLike | behaviors.Exported = '',
  init: str = 'full',
  extra_init: str = 'fresh',
  seed: int = 0,
  preset: str = 'auto',
  num_environments: int = 16,
  workdir: runs.PathLike = '',
  progress: str = 'auto',
  callbacks: Sequence[Callback] = (),
  **settings: Any,
) -> runs.Run:
  """Trains R2D2 with behavior transfer on a task.

  Args:
    env: see `pretrain`.
    behavior: one behavior, several, or a `Bank`. A behavior is the result of
      `Run.export` or `load_behavior`, its directory, the name `action_repeat`
      or `uniform`, or your own `bt_acme.behaviors.Behavior`. A string may list
      several directories or names, separated by commas. The settings
      `behavior_epsilon` and `behavior_reward_input` apply to all exported
      behaviors, whatever they were loaded with.
    max_actor_steps: see `pretrain`.
    behavior_weights: the relative probability that a flight uses each behavior;
      empty for equal probabilities.
    init_from: see `train`.
    init: see `train`.
    extra_init: initial weights of the extra actions with init='full': `fresh`
      for random weights, or the `mean` over the other actions.
    seed: see `pretrain`.
    preset: see `pretrain`.
    num_environments: see `pretrain`.
    workdir: see `pretrain`.
    progress: see `pretrain`.
    callbacks: see `pretrain`.
    **settings: see `pretrain`.

  Returns:
    The run.

  Raises:
    ValueError: see `pretrain`.

  Example:
    ```python
    # Takes about two minutes on two cores.
    bt = bt_acme.transfer(
      'MiniGrid-FourRooms-v0:fixed',
      ['minigrid-explorer', 'uniform'],
      max_actor_steps=40_000,
      behavior_weights=(0.8, 0.2),
    )
    ```
  """
  if isinstance(behavior, banks.Bank):
    behavior = named_behaviors.load_bank(behavior.folder)
  return prepare(config_lib.BTConfig, **locals()).resume()


# By the configuration of their agent.
FUNCTIONS: Mapping[type, Callable[..., runs.Run]] = {
  config_lib.NGUConfig: pretrain,
  config_lib.R2D2Config: train,
  config_lib.BTConfig: transfer,
}


def prepare(
  config_class: type[config_lib.R2D2Config],
  *,
  env: str,
  max_actor_steps: int,
  seed: int,
  preset: str,
  num_environments: int,
  workdir: runs.PathLike,
  progress: str,
  callbacks: Sequence[Callback],
  settings: dict[str, Any],
  behavior: BehaviorLike | Sequence[BehaviorLike] = (),
  behavior_weights: Sequence[float] = (),
  init_from: runs.PathLike | behaviors.Exported = '',
  init: str = 'full',
  extra_init: str = 'fresh',
) -> runs.Run:
  """Returns the run of `pretrain`, `train` or `transfer`, not yet started."""
  for name, value, declared in (
    ('env', env, checks.setting('')),
    ('preset', preset, checks.setting('')),
    ('progress', progress, checks.choice(*runs.DISPLAYS)),
    ('num_environments', num_environments, checks.setting(1, above=0)),
  ):
    checks.check_value(name, value, declared)
  functions = checks.functions('callbacks', callbacks)
  checks.require(
    isinstance(behavior_weights, Iterable)
    and not isinstance(behavior_weights, str),
    f'behavior_weights={behavior_weights!r} is not a list. Pass a list.',
  )
  spec = assembly.spec_by_name(env, num_stacked=settings.get('num_stacked', 0))
  transferred: tuple[behaviors.Behavior, ...] = ()
  if config_class is config_lib.BTConfig:
    transferred = named_behaviors.make(behavior, config_lib.TransferConfig())
    checks.require(
      bool(transferred), f'behavior={behavior!r} is empty. Pass a behavior.'
    )
  config, of_run = _configure(config_class, spec, preset, settings, transferred)
  run = run_config.RunConfig(
    env=env,
    lp_launch_type='in_process',
    num_actors=1,
    envs_per_actor=num_environments,
    max_actor_steps=max_actor_steps,
    workdir=_path('workdir', workdir),
    seed=seed,
    **of_run,
  )
  if isinstance(config, config_lib.BTConfig):
    transferred = named_behaviors.make(transferred, config.transfer)
  agent = assembly.Agent(config, spec, transferred, tuple(behavior_weights))
  source = init_from if isinstance(init_from, behaviors.Exported) else None
  weights = initial_weights.WeightsConfig(
    init_from=source.folder if source else _path('init_from', init_from),
    init=init,
    extra_init=extra_init,
  )
  return runs.Run(
    agent,
    run,
    make_display=runs.DISPLAYS[progress],
    callbacks=functions,
    **recorded_agent.start_options(agent, seed, weights, source),
  )


def _path(name: str, value: Any) -> str:
  """Returns a path as text; an empty text stays empty."""
  return '' if value == '' else str(checks.path(name, value))


def _configure(
  config_class: type[config_lib.R2D2Config],
  spec: assembly.EnvironmentSpec,
  preset: str,
  settings: Mapping[str, Any],
  transferred: Sequence[behaviors.Behavior] = (),
) -> tuple[config_lib.R2D2Config, dict[str, Any]]:
  """Returns the agent's configuration, and the given settings of the run.

  Args:
    config_class: the class of the configuration.
    spec: the spec of the environment, for the preset `auto`.
    preset: see `pretrain`.
    settings: the settings of the user, which override those of the preset.
    transferred: the behaviors to transfer, for the preset `auto`.

  Raises:
    ValueError: if a setting is unknown or invalid.
  """
  if preset == 'auto':
    kind = networks.torso_kind('auto', spec.observation_shape)
    exported = (x for x in transferred if isinstance(x, behaviors.Exported))
    steps = max((behavior.actor_steps for behavior in exported), default=0)
    preset = presets.automatic(kind, steps)
  known = (*_keywords(config_class), *RUN_SETTINGS)
  for name, value in settings.items():
    checks.require(
      name in known, f'{name}={value!r} {_explain_unknown(name, known)}'
    )
  values = {**presets.get(preset, config_class, settings), **settings}
  values_of_run = {**presets.PRESETS[preset].settings, **settings}
  config: config_lib.R2D2Config = names.build(
    config_class, {k: v for k, v in values.items() if k not in RUN_SETTINGS}
  )
  return config, {k: v for k, v in values_of_run.items() if k in RUN_SETTINGS}


def _explain_unknown(name: str, known: Sequence[str]) -> str:
  """Returns the end of the error about a setting that a function lacks."""
  if name in ('num_actors', 'envs_per_actor'):
    return 'applies only to runs of several processes. Use num_environments.'
  if name == 'bank':
    return 'is a flag of run_bt.py. Pass bt_acme.Bank(DIRECTORY) as behavior.'
  for config_class, function in FUNCTIONS.items():
    if name in _keywords(config_class):
      return f'is a setting of bt_acme.{function.__name__}. Remove it here.'
  if name in run_config.RunConfig.__dataclass_fields__:
    return 'applies only to launch scripts. Remove it.'
  return f'is not a setting: {names.suggest(name, known)}'


def _keywords(config_class: type[config_lib.R2D2Config]) -> tuple[str, ...]:
  """Returns the arguments of an agent's function, and the agent's settings."""
  spec = inspect.getfullargspec(FUNCTIONS[config_class])
  return (*spec.args, *spec.kwonlyargs, *names.defaults_of(config_class))
