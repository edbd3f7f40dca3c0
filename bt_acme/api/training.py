"""`pretrain`, `train` and `transfer`."""

import dataclasses
import pathlib
from typing import (
  Any,
  Dict,
  List,
  NamedTuple,
  Optional,
  Sequence,
  Tuple,
  Union,
)

from bt_acme import assembly, behaviors
from bt_acme import config as config_lib
from bt_acme.api import runs
from bt_acme.cli import checksums, initial_weights, named_behaviors
from bt_acme.config import names, presets
from bt_acme.config import run as run_config
from bt_acme.core import networks
from bt_acme.runtime.in_process_program import Callback

BehaviorLike = Union[str, pathlib.Path, behaviors.Behavior]

# The settings of the run itself that a caller may change by name. The others
# are arguments, or say how processes are spread.
_RUN_SETTINGS = (
  *('num_stacked', 'evaluation_period', 'evaluation_episodes'),
  *('checkpoint_period', 'num_evaluators', 'snapshot_steps'),
)


class _Options(NamedTuple):
  """The arguments that the three functions share, and what follows from them.

  Attributes:
    spec: the environment's.
    preset: the name of the preset, not `auto`.
    run: the configuration of the run.
    progress: `auto` or `off`.
    callbacks: are called after each turn.
    settings: the caller's settings of the agent, by name.
  """

  spec: assembly.EnvironmentSpec
  preset: str
  run: run_config.RunConfig
  progress: str
  callbacks: Tuple[Callback, ...]
  settings: Dict[str, Any]

  @classmethod
  def of(
    cls,
    env: str,
    max_actor_steps: int,
    seed: int,
    preset: str,
    num_environments: int,
    workdir: str,
    progress: str,
    callbacks: Sequence[Callback],
    settings: Dict[str, Any],
  ) -> '_Options':
    """Checks the arguments, as far as no setting does."""
    if progress not in ('auto', 'off'):
      raise ValueError(f"progress={progress!r}: choose 'auto' or 'off'.")
    for callback in callbacks:
      if not callable(callback):
        raise ValueError(f'callbacks: {callback!r} cannot be called.')
    if num_environments < 1:
      raise ValueError(f'num_environments={num_environments} must be positive.')
    spec = assembly.spec_by_name(
      env, num_stacked=settings.get('num_stacked', 0)
    )
    if preset == 'auto':
      kind = networks.torso_kind('auto', spec.observation_shape)
      preset = 'atari_small' if kind == 'nature' else 'minigrid'
    values = {**presets.get(preset, _RunSettings), **settings}
    run = run_config.RunConfig(
      env=env,
      lp_launch_type='in_process',
      num_actors=1,
      envs_per_actor=num_environments,
      max_actor_steps=max_actor_steps,
      workdir=workdir,
      seed=seed,
      **{name: values[name] for name in _RUN_SETTINGS if name in values},
    )
    return cls(spec, preset, run, progress, tuple(callbacks), settings)


@dataclasses.dataclass(frozen=True)
class _RunSettings:
  """The settings of a run alone, of which presets change some."""

  run: run_config.RunConfig = run_config.RunConfig()


def pretrain(
  env: str,
  *,
  max_actor_steps: int,
  seed: int = 0,
  preset: str = 'auto',
  num_environments: int = 16,
  workdir: Union[str, pathlib.Path] = '',
  progress: str = 'auto',
  callbacks: Sequence[Callback] = (),
  **settings: Any,
) -> runs.Run:
  """Pre-trains a policy without the environment's reward, to explore.

  It is NGU: R2D2 with Retrace, and an intrinsic reward. Ctrl-C, or the button
  that interrupts a notebook's cell, ends the run; what it has learned so far is
  returned, and `Run.resume` goes on.

  Args:
    env: the name of an environment: an Atari game, a MiniGrid id, one of
      `register_environment`.
    max_actor_steps: the budget, over all environments; an actor step is 4
      frames on Atari.
    seed: decides everything; the same seed gives the same run.
    preset: the defaults of the settings: a name of `bt_acme.config.presets`, or
      `auto`, which is `minigrid` for small observations and `atari_small` for
      others.
    num_environments: environments that are stepped at once.
    workdir: the folder for logs, checkpoints and the behavior. The same call
      with the same folder goes on with the run that is there. Without one, a
      temporary folder serves as long as the run is in use.
    progress: `auto` shows a bar, `off` shows nothing.
    callbacks: functions that are called after each turn with a dictionary:
      `actor_steps`, `learner_steps`, `replay_size`, and once there are some the
      mean `episode_return` of the last 100 episodes and `evaluator_return`. If
      one returns True, the run stops, as after Ctrl-C.
    **settings: any setting by the name of its flag, such as
      `intrinsic_reward='rnd'`.

  Returns:
    The run.

  Raises:
    ValueError: before anything is computed, for an unknown name, a value that
      is refused, or a workdir of another run.
  """
  options = _Options.of(
    env,
    max_actor_steps,
    seed,
    preset,
    num_environments,
    str(workdir),
    progress,
    callbacks,
    settings,
  )
  config = _config(config_lib.NGUConfig, options)
  return _run(options, config, (), {})


def train(
  env: str,
  *,
  max_actor_steps: int,
  init_from: Union[str, pathlib.Path, behaviors.Exported] = '',
  init: str = 'full',
  seed: int = 0,
  preset: str = 'auto',
  num_environments: int = 16,
  workdir: Union[str, pathlib.Path] = '',
  progress: str = 'auto',
  callbacks: Sequence[Callback] = (),
  **settings: Any,
) -> runs.Run:
  """Learns a task with R2D2 and Peng's Q(lambda), without behavior transfer.

  Args:
    env: see `pretrain`, as all that is not described here.
    max_actor_steps: see `pretrain`.
    init_from: a behavior whose weights are the start; fine-tuning.
    init: which of them: `full`, or `partial` for torso and LSTM.
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
    ValueError: as `pretrain`.
  """
  options = _Options.of(
    env,
    max_actor_steps,
    seed,
    preset,
    num_environments,
    str(workdir),
    progress,
    callbacks,
    settings,
  )
  config = _config(config_lib.R2D2Config, options)
  return _run(options, config, (), {}, _weights(init_from, init))


def transfer(
  env: str,
  behavior: Union[BehaviorLike, Sequence[BehaviorLike]],
  *,
  max_actor_steps: int,
  behavior_weights: Sequence[float] = (),
  init_from: Union[str, pathlib.Path, behaviors.Exported] = '',
  init: str = 'full',
  seed: int = 0,
  preset: str = 'auto',
  num_environments: int = 16,
  workdir: Union[str, pathlib.Path] = '',
  progress: str = 'auto',
  callbacks: Sequence[Callback] = (),
  **settings: Any,
) -> runs.Run:
  """Learns a task with R2D2 and behavior transfer.

  Args:
    env: see `pretrain`, as all that is not described here.
    behavior: what `Run.export` or `load_behavior` returned, its folder, the
      name `action_repeat` or `uniform`, a `bt_acme.behaviors.Behavior` of your
      own, or several of these.
    max_actor_steps: see `pretrain`.
    behavior_weights: a flight draws its behavior in proportion to these; equal
      by default.
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
    ValueError: as `pretrain`.
  """
  options = _Options.of(
    env,
    max_actor_steps,
    seed,
    preset,
    num_environments,
    str(workdir),
    progress,
    callbacks,
    settings,
  )
  config = _config(config_lib.BTConfig, options)
  given: List[Any] = (
    list(behavior) if isinstance(behavior, (list, tuple)) else [behavior]
  )
  transferred = tuple(_behavior(each, config.transfer) for each in given)
  identity = {
    'behaviors': [each.name for each in transferred],
    'behavior_weights': list(behavior_weights),
  }
  return _run(
    options,
    config,
    transferred,
    identity,
    _weights(init_from, init),
    tuple(behavior_weights),
  )


def _config(config_class: Any, options: _Options) -> Any:
  """The agent's configuration: the caller's values over the preset's."""
  known = (*names.settings_of(config_class), *_RUN_SETTINGS)
  for name in options.settings:
    if name not in known:
      raise ValueError(
        f'{name}={options.settings[name]!r}: there is no such setting; '
        + names.suggest(name, known)
      )
  values = {**presets.get(options.preset, config_class), **options.settings}
  return names.build(
    config_class,
    {k: v for k, v in values.items() if k not in _RUN_SETTINGS},
  )


def _behavior(
  given: Any, transfer_config: config_lib.TransferConfig
) -> behaviors.Behavior:
  """Loads a behavior; one that was exported acts as the settings say."""
  if isinstance(given, behaviors.Exported):
    given = given.folder
  if isinstance(given, behaviors.Behavior):
    return given
  return named_behaviors.make(
    named_behaviors.BehaviorsConfig(behavior=str(given)), transfer_config
  )[0]


def _weights(
  init_from: Union[str, pathlib.Path, behaviors.Exported], init: str
) -> Optional[initial_weights.WeightsConfig]:
  if isinstance(init_from, behaviors.Exported):
    init_from = init_from.folder
  weights = initial_weights.WeightsConfig(init_from=str(init_from), init=init)
  return weights if weights.init_from else None


def _run(
  options: _Options,
  config: Any,
  transferred: Tuple[behaviors.Behavior, ...],
  identity: Dict[str, Any],
  weights: Optional[initial_weights.WeightsConfig] = None,
  behavior_weights: Tuple[float, ...] = (),
) -> runs.Run:
  run = options.run
  agent = assembly.Agent(config, options.spec, transferred, behavior_weights)
  initial_params = None
  if weights is not None:
    initial_params = initial_weights.load(weights, agent, run.seed)
    identity = {**identity, 'weights': dataclasses.asdict(weights)}
  if transferred or weights:
    identity = {**identity, **checksums.compute(transferred, weights)}
  return runs.Run(
    runs.Request(
      agent,
      run,
      initial_params,
      identity,
      options.progress,
      options.callbacks,
    )
  )
