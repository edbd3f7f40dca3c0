"""What the demo runs: its environments, budgets, settings and runs."""

import dataclasses
import pathlib
from typing import Any, Dict, List, Mapping, Tuple

from bt_acme import config as config_lib
from bt_acme.config import names
from experiments.harness import small_runs

# Every episode has the same layout, and the goal is 15 actions away: one random
# episode of 3,700 reaches it.
TASK = 'MiniGrid-FourRooms-v0:fixed'
# Pre-training sees another layout in each episode. The goal is left out,
# because reaching it ends an episode, so that an explorer learns to avoid it.
WORLD = 'MiniGrid-FourRooms-v0:no_goal'
MAP_WORLD = 'MiniGrid-FourRooms-v0:fixed:no_goal'

Job = small_runs.Job


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
  def learners(self) -> List[str]:
    """The algorithms that learn the task."""
    return ['R2D2', *(['fine-tuning'] if self.finetuning else []), 'R2D2 + BT']

  @property
  def launched(self) -> Job:
    """The run that takes place in the real program of several processes."""
    return self.job('R2D2 + BT', self.seeds[0])

  @property
  def maps(self) -> Job:
    """A random policy plays, and it is mapped where it and pi_p go."""
    return self.job('random', self.seeds[0])

  @property
  def jobs(self) -> List[Job]:
    """The other runs, in an order in which each finds what it needs."""
    algorithms = ['NGU', *reversed(self.learners), 'pi_p']
    jobs = [self.job(name, seed) for name in algorithms for seed in self.seeds]
    jobs.remove(self.launched)
    return [*jobs, self.maps]

  def job(self, algorithm: str, seed: int) -> Job:
    """Returns an algorithm's run with a seed."""
    ngu = small_runs.Run(
      'NGU',
      'ngu',
      WORLD,
      self.pretraining_steps,
      self.own_settings(config_lib.NGUConfig),
      episodes=0,
    )
    r2d2 = small_runs.Run(
      'R2D2',
      'r2d2',
      TASK,
      self.task_steps,
      self.own_settings(config_lib.R2D2Config),
      episodes=self.episodes,
    )
    transferred: Dict[str, Any] = {'algorithm': algorithm, 'behavior': ngu}
    changes: Dict[str, Any] = {
      'R2D2': {},
      'fine-tuning': {'init': 'full', **transferred},
      'R2D2 + BT': {
        'kind': 'bt',
        'settings': self.own_settings(config_lib.BTConfig),
        'film': True,
        **transferred,
      },
      'pi_p': {'kind': 'behavior', 'actor_steps': 0, **transferred},
      'random': {
        'kind': 'random',
        'actor_steps': 0,
        'map_world': MAP_WORLD,
        'map_episodes': self.map_episodes,
        **transferred,
      },
    }
    if algorithm == 'NGU':
      return Job(ngu, seed)
    if algorithm == 'R2D2 + BT' and seed == self.seeds[0]:
      changes[algorithm].update(kind='program', workdir=f'program_{seed}')
    return Job(dataclasses.replace(r2d2, **changes[algorithm]), seed)

  def flags(self, folder: pathlib.Path) -> List[str]:
    """Returns the flags of `run_bt.py` for the run of the program."""
    job = self.launched
    (pretraining,) = job.needed
    return [
      f'--preset={small_runs.PRESET}',
      *(f'--{name}={value}' for name, value in job.run.settings.items()),
      f'--env={TASK}',
      f'--behavior={pretraining.behavior(folder)}',
      f'--max_actor_steps={self.task_steps}',
      '--num_evaluators=0',  # The demo plays the task itself, after the end.
      f'--seed={job.seed}',
      f'--workdir={folder / job.run.workdir}',
    ]

  def own_settings(self, config_class: type) -> Dict[str, Any]:
    """The settings over the preset's that a configuration has."""
    known = names.settings_of(config_class)
    return {k: v for k, v in self.settings.items() if k in known}


def label(job: Job) -> str:
  """Returns what a run is called on the terminal."""
  if job.run.map_world:
    return 'random and heat maps'
  return f'{job.run.algorithm} seed {job.seed}'
