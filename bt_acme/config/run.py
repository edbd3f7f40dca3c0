"""What one run is: where it runs, with how many processes, and for how long.

What the agent is, the configurations of `bt_acme.config.agent` say.
"""

import dataclasses
import json
import pathlib
from typing import Any, Dict, Mapping, Optional

from bt_acme import config as config_lib
from bt_acme.config import checks

_FILE = 'config.json'
_COMPLETED_FILE = 'completed.json'
# What may differ when a run is taken up again.
_MAY_CHANGE = (
  'max_actor_steps',
  'num_evaluators',
  'evaluation_period',
  'evaluation_episodes',
  'checkpoint_period',
  'replay_port',
  'inference',
  'num_devices',
  'codec',  # Of a replay that does not outlive the run's processes.
)


LARGEST_SEED = 2**32 - 1  # A key of JAX takes no larger one.


@dataclasses.dataclass(frozen=True)
class RunConfig:
  """One run of one agent: its environment, processes, budget and folder."""

  env: str = checks.setting(
    'montezuma_revenge',
    'The environment: an Atari game (`montezuma_revenge`), a game with a '
    'modified reward (`hero:miners_easy`) or a MiniGrid id.',
  )
  num_stacked: int = checks.setting(
    0,
    'An observation stacks this many frames; 0 takes the usual number, which '
    'is 4 on Atari and 1 elsewhere. Campos et al. stack frames and do not say '
    'how many; NGU, from which their settings derive, has 1.',
    minimum=0,
  )
  num_actors: int = checks.setting(
    2, 'The run has this many actor processes. The paper has 256.', above=0
  )
  envs_per_actor: int = checks.setting(
    16,
    'Each actor steps this many environments at once, with one call of its '
    'networks.',
    above=0,
  )
  max_actor_steps: int = checks.setting(
    1_000_000,
    'The run ends after this many actor steps, counted over all environments. '
    'An actor step is 4 frames on Atari.',
    above=0,
  )
  workdir: str = checks.setting(
    'runs/run',
    'The folder for logs, checkpoints and the exported behavior. The same '
    'command with the same workdir resumes the run.',
  )
  seed: int = checks.setting(
    0,
    'The seed of the run. It does not repeat the numbers of a run of several '
    'processes, because these run side by side.',
    minimum=0,
    maximum=LARGEST_SEED,
  )
  num_evaluators: int = checks.setting(
    1,
    'The run has this many evaluator processes; 0 evaluates nothing.',
    minimum=0,
  )
  evaluation_period: int = checks.setting(
    100_000,
    'The number of actor steps from one evaluation to the next. One more '
    'evaluation comes at the end of the run.',
    above=0,
  )
  evaluation_episodes: int = checks.setting(
    5, 'An evaluation plays this many episodes.', above=0
  )
  checkpoint_period: float = checks.setting(
    300.0,
    'The number of seconds from one checkpoint of the learner to the next.',
    above=0,
  )
  replay_port: int = checks.setting(
    0,
    'The replay server listens on this port; 0 picks a free one.',
    minimum=0,
    maximum=65535,
  )
  inference: str = checks.setting(
    'local',
    'Where actions are chosen: `local` chooses them in each actor; `server` '
    "has one process choose them for all actors on the learner's accelerator. "
    'On an accelerator the server also computes the intrinsic rewards and '
    'holds the episodic memories of all environments, so that actors only '
    'emulate; on a CPU the actors keep both. Choose `server` if there is a '
    'GPU.',
    choices=('local', 'server'),
  )

  def __post_init__(self) -> None:
    checks.check(self)
    checks.require(
      self.envs_per_actor % self.groups_per_actor == 0,
      f'envs_per_actor={self.envs_per_actor} must be even with '
      "inference='server', because one half acts while the other waits.",
    )

  @property
  def num_environments(self) -> int:
    """The number of environments of all actors."""
    return self.num_actors * self.envs_per_actor

  @property
  def groups_per_actor(self) -> int:
    """The number of groups in which an actor's environments ask for actions."""
    return 2 if self.inference == 'server' else 1

  @property
  def group_size(self) -> int:
    """The number of environments in a group."""
    return self.envs_per_actor // self.groups_per_actor

  @property
  def num_groups(self) -> int:
    """The number of groups of all actors."""
    return self.num_actors * self.groups_per_actor

  @property
  def behavior_folder(self) -> str:
    """The folder that the learner exports the behavior to."""
    return str(pathlib.Path(self.workdir) / 'behavior')

  @property
  def checkpoint_folder(self) -> str:
    """The folder of the learner's checkpoints."""
    return str(pathlib.Path(self.workdir) / 'checkpoints')


def _identity(
  run: RunConfig, config: config_lib.R2D2Config, extra: Mapping[str, Any]
) -> Dict[str, Any]:
  def kept(settings: Mapping[str, Any]) -> Dict[str, Any]:
    return {
      name: value
      for name, value in settings.items()
      if name not in _MAY_CHANGE and name != 'workdir'
    }

  identity = {
    'agent': type(config).__name__,
    'run': kept(dataclasses.asdict(run)),
    'config': {
      group: kept(settings)
      for group, settings in config_lib.to_dict(config).items()
    },
    **extra,
  }
  plain: Dict[str, Any] = json.loads(json.dumps(identity))
  return plain


def _differences(old: Any, new: Any, path: str = '') -> Dict[str, Any]:
  if isinstance(old, dict) and isinstance(new, dict):
    found: Dict[str, Any] = {}
    for name in sorted(set(old) | set(new)):
      found.update(_differences(old.get(name), new.get(name), f'{path}{name}.'))
    return found
  return {} if old == new else {path.rstrip('.').split('.')[-1]: (old, new)}


def read_identity(workdir: str) -> Dict[str, Any]:
  """What `claim_workdir` wrote.

  Raises:
    ValueError: if the workdir holds no run, or its record is damaged.
  """
  path = pathlib.Path(workdir) / _FILE
  try:
    identity: Dict[str, Any] = json.loads(path.read_text())
    if not {'agent', 'run', 'config'} <= set(identity):
      raise ValueError('it is not complete')
  except OSError as error:
    raise ValueError(f'workdir={workdir!r} holds no run.') from error
  except (ValueError, TypeError) as error:
    raise ValueError(
      f'workdir={workdir!r}: {_FILE} is damaged ({error}): choose another '
      'workdir.'
    ) from error
  return identity


def claim_workdir(
  run: RunConfig,
  config: config_lib.R2D2Config,
  extra: Optional[Mapping[str, Any]] = None,
) -> bool:
  """Makes the workdir this run's, or recognizes it as such.

  Args:
    run: the run.
    config: the agent's.
    extra: whatever else makes it this run: behaviors, initial weights.

  Returns:
    Whether the run was begun before and is taken up again.

  Raises:
    ValueError: if the workdir belongs to another configuration; names the
      settings that differ. Nothing is written then.
  """
  identity = _identity(run, config, extra or {})
  folder = pathlib.Path(run.workdir)
  path = folder / _FILE
  if path.is_file():
    old = read_identity(run.workdir)
    differences = _differences(old, identity)
    if differences:
      listed = ', '.join(
        f'{name}={before!r} there and {now!r} here'
        for name, (before, now) in differences.items()
      )
      raise ValueError(
        f'workdir={run.workdir!r} belongs to another configuration: {listed}. '
        'Choose another workdir, or the same settings to resume.'
      )
    return True
  temporary = folder / f'.{_FILE}'  # An attempt that was cut short may be left.
  if folder.is_dir() and set(folder.iterdir()) - {temporary}:
    raise ValueError(
      f'workdir={run.workdir!r} is not empty and holds no run: choose an empty '
      'or new folder.'
    )
  try:
    folder.mkdir(parents=True, exist_ok=True)
    temporary.write_text(json.dumps(identity, indent=2) + '\n')
    temporary.rename(path)
  except OSError as error:
    raise ValueError(
      f'workdir={run.workdir!r} cannot be written: {error}.'
    ) from error
  return False


def mark_completed(run: RunConfig) -> None:
  """Writes down that the run has used up its budget."""
  path = pathlib.Path(run.workdir) / _COMPLETED_FILE
  path.write_text(json.dumps({'max_actor_steps': run.max_actor_steps}) + '\n')


def is_completed(run: RunConfig) -> bool:
  """Whether the run in the workdir had this budget, or more, and used it up."""
  try:
    path = pathlib.Path(run.workdir) / _COMPLETED_FILE
    completed = json.loads(path.read_text())['max_actor_steps']
    return bool(completed >= run.max_actor_steps)
  except (OSError, ValueError, KeyError, TypeError):
    return False
