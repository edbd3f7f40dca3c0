"""Training in one process: `pretrain`, `train` and `transfer`."""

import dataclasses
import pathlib
from typing import Any, Dict, List, Optional, Sequence, Tuple, Type, Union

from bt_acme import assembly, behaviors
from bt_acme import config as config_lib
from bt_acme.api import runs
from bt_acme.cli import checksums, initial_weights, named_behaviors
from bt_acme.config import names, presets
from bt_acme.config import run as run_config
from bt_acme.core import networks
from bt_acme.runtime.engines.in_process import Callback

PathLike = Union[str, pathlib.Path]
BehaviorLike = Union[PathLike, behaviors.Behavior]

# The settings of the run that `**settings` may contain. All others are separate
# arguments or apply only to runs of several processes.
_RUN_SETTINGS = (
  *('num_stacked', 'evaluation_period', 'evaluation_episodes'),
  *('checkpoint_period', 'num_evaluators', 'snapshot_steps'),
)


@dataclasses.dataclass(frozen=True)
class _Options:
  """The arguments common to all functions of this module; see `pretrain`."""

  env: str
  max_actor_steps: int
  seed: int
  preset: str
  num_environments: int
  workdir: PathLike
  progress: str
  callbacks: Sequence[Callback]
  settings: Dict[str, Any]

  def __post_init__(self) -> None:
    if self.progress not in ('auto', 'off'):
      raise ValueError(
        f"progress={self.progress!r} is not valid. Choose 'auto' or 'off'."
      )
    for callback in self.callbacks:
      if not callable(callback):
        raise ValueError(
          f'callbacks={self.callbacks!r} contains {callback!r}, which is not '
          'callable. Pass functions.'
        )
    if self.num_environments < 1:
      raise ValueError(
        f'num_environments={self.num_environments} must be positive.'
      )

  def run_config(self, preset: str) -> run_config.RunConfig:
    """Returns the settings of the run: given ones override the preset's."""
    values = {**presets.get(preset, _RunSettings), **self.settings}
    return run_config.RunConfig(
      env=self.env,
      lp_launch_type='in_process',
      num_actors=1,
      envs_per_actor=self.num_environments,
      max_actor_steps=self.max_actor_steps,
      workdir=str(self.workdir),
      seed=self.seed,
      **{name: values[name] for name in _RUN_SETTINGS if name in values},
    )

  def agent_config(
    self, config_class: Type[config_lib.R2D2Config], preset: str
  ) -> config_lib.R2D2Config:
    """Returns the settings of the agent: given ones override the preset's."""
    known = (*names.settings_of(config_class), *_RUN_SETTINGS)
    for name, value in self.settings.items():
      if name not in known:
        raise ValueError(
          f'{name}={value!r} is not a setting: {names.suggest(name, known)}'
        )
    values = {**presets.get(preset, config_class), **self.settings}
    config: config_lib.R2D2Config = names.build(
      config_class,
      {k: v for k, v in values.items() if k not in _RUN_SETTINGS},
    )
    return config


@dataclasses.dataclass(frozen=True)
class _RunSettings:
  """The settings of a run, in the form that `presets.get` takes."""

  run: run_config.RunConfig = run_config.RunConfig()


def pretrain(
  env: str,
  *,
  max_actor_steps: int,
  seed: int = 0,
  preset: str = 'auto',
  num_environments: int = 16,
  workdir: PathLike = '',
  progress: str = 'auto',
  callbacks: Sequence[Callback] = (),
  **settings: Any,
) -> runs.Run:
  """Pre-trains an exploration policy without the environment's reward.

  The agent is NGU: R2D2 with Retrace and an intrinsic reward. An interrupt
  (Ctrl-C, or the stop button of a notebook) ends the run early; the result so
  far is returned, and `Run.resume` continues it.

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
      for others.
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
  return _start(
    config_lib.NGUConfig,
    _Options(
      env,
      max_actor_steps,
      seed,
      preset,
      num_environments,
      workdir,
      progress,
      callbacks,
      settings,
    ),
  )


def train(
  env: str,
  *,
  max_actor_steps: int,
  init_from: Union[PathLike, behaviors.Exported] = '',
  init: str = 'full',
  seed: int = 0,
  preset: str = 'auto',
  num_environments: int = 16,
  workdir: PathLike = '',
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
  return _start(
    config_lib.R2D2Config,
    _Options(
      env,
      max_actor_steps,
      seed,
      preset,
      num_environments,
      workdir,
      progress,
      callbacks,
      settings,
    ),
    init_from=init_from,
    init=init,
  )


def transfer(
  env: str,
  behavior: Union[BehaviorLike, Sequence[BehaviorLike]],
  *,
  max_actor_steps: int,
  behavior_weights: Sequence[float] = (),
  init_from: Union[PathLike, behaviors.Exported] = '',
  init: str = 'full',
  seed: int = 0,
  preset: str = 'auto',
  num_environments: int = 16,
  workdir: PathLike = '',
  progress: str = 'auto',
  callbacks: Sequence[Callback] = (),
  **settings: Any,
) -> runs.Run:
  """Trains R2D2 with behavior transfer on a task.

  Args:
    env: see `pretrain`.
    behavior: one behavior or several. A behavior is the result of `Run.export`
      or `load_behavior`, its directory, the name `action_repeat` or `uniform`,
      or your own `bt_acme.behaviors.Behavior`.
    max_actor_steps: see `pretrain`.
    behavior_weights: the relative probability that a flight uses each behavior;
      empty for equal probabilities.
    init_from: see `train`.
    init: see `train`.
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
  given: Sequence[Any] = (
    behavior if isinstance(behavior, (list, tuple)) else [behavior]
  )
  return _start(
    config_lib.BTConfig,
    _Options(
      env,
      max_actor_steps,
      seed,
      preset,
      num_environments,
      workdir,
      progress,
      callbacks,
      settings,
    ),
    transferred=given,
    behavior_weights=behavior_weights,
    init_from=init_from,
    init=init,
  )


def _start(
  config_class: Type[config_lib.R2D2Config],
  options: _Options,
  *,
  transferred: Sequence[BehaviorLike] = (),
  behavior_weights: Sequence[float] = (),
  init_from: Union[PathLike, behaviors.Exported] = '',
  init: str = 'full',
) -> runs.Run:
  """Creates an agent and runs it."""
  spec = assembly.spec_by_name(
    options.env, num_stacked=options.settings.get('num_stacked', 0)
  )
  preset = options.preset
  if preset == 'auto':
    kind = networks.torso_kind('auto', spec.observation_shape)
    preset = 'atari_small' if kind == 'nature' else 'minigrid'
  run = options.run_config(preset)
  config = options.agent_config(config_class, preset)
  agent = assembly.Agent(
    config, spec, _behaviors(transferred, config), tuple(behavior_weights)
  )
  identity: Dict[str, Any] = {}
  if agent.behaviors:
    identity['behaviors'] = [behavior.name for behavior in agent.behaviors]
    identity['behavior_weights'] = list(behavior_weights)
  weights: Optional[initial_weights.WeightsConfig] = None
  initial_params = None
  source = init_from if isinstance(init_from, behaviors.Exported) else None
  folder = source.folder if source else str(init_from)
  if folder or init != 'full':
    weights = initial_weights.WeightsConfig(init_from=folder, init=init)
    initial_params = initial_weights.load(weights, agent, run.seed, source)
    identity['weights'] = dataclasses.asdict(weights)
  if agent.behaviors or weights:
    identity.update(checksums.compute(agent.behaviors, weights))
  return runs.Run.start(
    runs.RunRequest(
      agent,
      run,
      initial_params,
      identity,
      options.progress,
      tuple(options.callbacks),
    )
  )


def _behaviors(
  given: Sequence[BehaviorLike], config: config_lib.R2D2Config
) -> Tuple[behaviors.Behavior, ...]:
  """Loads behaviors, and applies the transfer settings to exported ones."""
  if not isinstance(config, config_lib.BTConfig):
    return ()
  made: List[behaviors.Behavior] = []
  for each in given:
    if isinstance(each, behaviors.Exported):
      settings = config.transfer
      made.append(
        each.acting(
          epsilon=settings.behavior_epsilon,
          reward_input=settings.behavior_reward_input,
        )
      )
    elif isinstance(each, behaviors.Behavior):
      made.append(each)
    else:
      named = named_behaviors.BehaviorsConfig(behavior=str(each))
      made.append(named_behaviors.make(named, config.transfer)[0])
  return tuple(made)
