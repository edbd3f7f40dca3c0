"""`pretrain`, `train` and `transfer`."""

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
from bt_acme.runtime.in_process_program import Callback

PathLike = Union[str, pathlib.Path]
BehaviorLike = Union[PathLike, behaviors.Behavior]

# The settings of the run itself that a caller may change by name. The others
# are arguments, or say how processes are spread.
_RUN_SETTINGS = (
  *('num_stacked', 'evaluation_period', 'evaluation_episodes'),
  *('checkpoint_period', 'num_evaluators', 'snapshot_steps'),
)


@dataclasses.dataclass(frozen=True)
class _Options:
  """The arguments that all functions share, as `pretrain` describes them."""

  env: str
  max_actor_steps: int
  seed: int = 0
  preset: str = 'auto'
  num_environments: int = 16
  workdir: PathLike = ''
  progress: str = 'auto'
  callbacks: Sequence[Callback] = ()
  settings: Dict[str, Any] = dataclasses.field(default_factory=dict)

  def __post_init__(self) -> None:
    if self.progress not in ('auto', 'off'):
      raise ValueError(f"progress={self.progress!r}: choose 'auto' or 'off'.")
    for callback in self.callbacks:
      if not callable(callback):
        raise ValueError(f'callbacks: {callback!r} cannot be called.')
    if self.num_environments < 1:
      raise ValueError(
        f'num_environments={self.num_environments} must be positive.'
      )

  @classmethod
  def of(
    cls, env: str, max_actor_steps: int, given: Dict[str, Any]
  ) -> '_Options':
    """Sorts keyword arguments into these options and an agent's settings."""
    own = {f.name for f in dataclasses.fields(cls)} - {'settings'}
    return cls(
      env,
      max_actor_steps,
      settings={k: v for k, v in given.items() if k not in own},
      **{k: v for k, v in given.items() if k in own},
    )

  def run_config(self, preset: str) -> run_config.RunConfig:
    """Returns the configuration of the run, over the values of a preset."""
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
    """Returns the agent's configuration, over the values of a preset."""
    known = (*names.settings_of(config_class), *_RUN_SETTINGS)
    for name, value in self.settings.items():
      if name not in known:
        raise ValueError(
          f'{name}={value!r}: there is no such setting; '
          + names.suggest(name, known)
        )
    values = {**presets.get(preset, config_class), **self.settings}
    return names.build(
      config_class,
      {k: v for k, v in values.items() if k not in _RUN_SETTINGS},
    )


@dataclasses.dataclass(frozen=True)
class _RunSettings:
  """The settings of a run alone, of which presets change some."""

  run: run_config.RunConfig = run_config.RunConfig()


def pretrain(env: str, *, max_actor_steps: int, **options: Any) -> runs.Run:
  """Pre-trains a policy without the environment's reward, to explore.

  It is NGU: R2D2 with Retrace, and an intrinsic reward. Ctrl-C, or the button
  that interrupts a notebook's cell, ends the run; what it has learned so far is
  returned, and `Run.resume` continues it.

  Args:
    env: the name of an environment: an Atari game, a MiniGrid id, one of
      `register_environment`.
    max_actor_steps: the budget, over all environments; an actor step is 4
      frames on Atari.
    **options: any of the following, and any setting by the name of its flag,
      such as `intrinsic_reward='rnd'`.
      seed: decides everything; the same seed gives the same run. 0 by default.
      preset: the defaults of the settings: a name of `bt_acme.config.presets`,
        or `auto` (the default), which is `minigrid` for small observations and
        `atari_small` for others.
      num_environments: environments that are stepped at once, 16 by default.
      workdir: the directory for logs, checkpoints and the behavior. The same
        call with the same directory resumes the run in it. Without one, a
        temporary directory serves as long as the run is in use.
      progress: `auto` (the default) shows a bar, `off` shows nothing.
      callbacks: functions that are called after each turn with a dictionary:
        `actor_steps`, `learner_steps`, `replay_size`, and once there are some
        the mean `episode_return` of the last 100 episodes and
        `evaluator_return`. If one returns True, the run stops, as after Ctrl-C.

  Returns:
    The run.

  Raises:
    ValueError: before anything is computed, for an unknown name, a value that
      is refused, or a workdir of another run.
  """
  return _start(
    config_lib.NGUConfig, _Options.of(env, max_actor_steps, options)
  )


def train(
  env: str,
  *,
  max_actor_steps: int,
  init_from: Union[PathLike, behaviors.Exported] = '',
  init: str = 'full',
  **options: Any,
) -> runs.Run:
  """Learns a task with R2D2 and Peng's Q(lambda), without behavior transfer.

  Args:
    env: see `pretrain`.
    max_actor_steps: see `pretrain`.
    init_from: a behavior whose weights are the start; fine-tuning.
    init: which of them: `full`, or `partial` for torso and LSTM.
    **options: see `pretrain`.

  Returns:
    The run.

  Raises:
    ValueError: as `pretrain`.
  """
  return _start(
    config_lib.R2D2Config,
    _Options.of(env, max_actor_steps, options),
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
  **options: Any,
) -> runs.Run:
  """Learns a task with R2D2 and behavior transfer.

  Args:
    env: see `pretrain`.
    behavior: what `Run.export` or `load_behavior` returned, its directory, the
      name `action_repeat` or `uniform`, a `bt_acme.behaviors.Behavior` of your
      own, or several of these.
    max_actor_steps: see `pretrain`.
    behavior_weights: a flight draws its behavior in proportion to these; equal
      by default.
    init_from: see `train`.
    init: see `train`.
    **options: see `pretrain`.

  Returns:
    The run.

  Raises:
    ValueError: as `pretrain`.
  """
  given: Sequence[Any] = (
    behavior if isinstance(behavior, (list, tuple)) else [behavior]
  )
  return _start(
    config_lib.BTConfig,
    _Options.of(env, max_actor_steps, options),
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
  """Makes the agent of a configuration, and runs it."""
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
  """Loads behaviors; one that was exported acts as the settings say."""
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
