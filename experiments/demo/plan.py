"""What the demo runs: the task, the budgets and the settings."""

import dataclasses
import pathlib
from typing import Any, Dict, List, Mapping, Optional, Tuple, Type, TypeVar

from bt_acme import config as config_lib
from bt_acme.config import names, presets

# Every episode has the same layout, and the goal is 15 actions away: one random
# episode of 3,700 reaches it.
TASK = 'MiniGrid-FourRooms-v0:fixed'
# Pre-training sees another layout in each episode. The goal is left out,
# because reaching it ends an episode, so that an explorer learns to avoid it.
WORLD = 'MiniGrid-FourRooms-v0:no_goal'
MAP_WORLD = 'MiniGrid-FourRooms-v0:fixed:no_goal'

PRESET = 'minigrid'

Config = TypeVar('Config', bound=config_lib.R2D2Config)


@dataclasses.dataclass(frozen=True)
class Job:
  """One run of the demo.

  Attributes:
    kind: one of `LABELS`.
    seed: of the run.
  """

  kind: str
  seed: int

  @property
  def name(self) -> str:
    """The name of its file."""
    return f'{self.kind}_{self.seed}'

  @property
  def label(self) -> str:
    """What it is called on the terminal."""
    if self.kind == MAPS:
      return LABELS[self.kind]
    return f'{LABELS[self.kind]} seed {self.seed}'

  def __str__(self) -> str:
    return self.label


PRETRAINING = 'ngu'
# Jobs that only play: pi_p of each seed plays the task. With the first seed, a
# random policy plays it too, and both policies are mapped.
BEHAVIOR, MAPS = 'pi_p', 'maps'
LABELS = {
  PRETRAINING: 'NGU',
  BEHAVIOR: 'pi_p',
  MAPS: 'random and heat maps',
  'r2d2': 'R2D2',
  'finetuning': 'fine-tuning',
  'bt': 'R2D2 + BT',
}


@dataclasses.dataclass(frozen=True)
class Plan:
  """What one call of the demo runs.

  Attributes:
    seeds: each has a pre-training, and runs that learn the task.
    finetuning: whether R2D2 also learns the task from the weights of pi_p.
    pretraining_steps: actor steps of pre-training.
    task_steps: actor steps of each run that learns the task.
    episodes: played after each run, behind each line of the table.
    map_episodes: behind each heat map.
    settings: settings by name, over those of the preset.
  """

  seeds: Tuple[int, ...] = (0, 1, 2)
  finetuning: bool = False
  pretraining_steps: int = 40_000
  task_steps: int = 40_000
  episodes: int = 100
  map_episodes: int = 32
  settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)

  @property
  def kinds(self) -> Tuple[str, ...]:
    """The kinds of runs that learn the task."""
    return ('r2d2', 'finetuning', 'bt') if self.finetuning else ('r2d2', 'bt')

  @property
  def launched(self) -> Job:
    """The run that takes place in the real program of several processes."""
    return Job('bt', self.seeds[0])

  @property
  def maps(self) -> Job:
    """The job that plays at random, and maps where policies go."""
    return Job(MAPS, self.seeds[0])

  @property
  def jobs(self) -> List[Job]:
    """The other runs, in an order in which each finds what it needs."""
    kinds = (PRETRAINING, *reversed(self.kinds), BEHAVIOR)
    jobs = [Job(kind, seed) for kind in kinds for seed in self.seeds]
    jobs.remove(self.launched)
    return [*jobs, self.maps]

  def steps(self, job: Job) -> int:
    """The actor steps of a run; 0 if it only plays."""
    if job.kind in (BEHAVIOR, MAPS):
      return 0
    return (
      self.pretraining_steps if job.kind == PRETRAINING else self.task_steps
    )

  def pretraining_of(self, job: Job) -> Optional[Job]:
    """The run whose behavior a run uses; None if it uses none."""
    if job.kind in (PRETRAINING, 'r2d2'):
      return None
    return Job(PRETRAINING, job.seed)

  def behavior_folder(self, seed: int, folder: pathlib.Path) -> pathlib.Path:
    """Where pre-training leaves its behavior."""
    return folder / f'behavior_{seed}'

  def own_settings(self, config_class: type) -> Dict[str, Any]:
    """The settings over the preset's that a configuration has."""
    known = names.settings_of(config_class)
    return {k: v for k, v in self.settings.items() if k in known}

  def configuration(self, config_class: Type[Config]) -> Config:
    """The preset's configuration of an agent, with the plan's settings."""
    configuration: Config = names.build(
      config_class,
      {
        **presets.get(PRESET, config_class),
        **self.own_settings(config_class),
      },
    )
    return configuration
