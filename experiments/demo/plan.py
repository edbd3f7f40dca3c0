"""The environments, budgets, settings and runs of the demo."""

import dataclasses
import pathlib
from typing import Any, Dict, List, Mapping, Tuple

from bt_acme import config as config_lib
from bt_acme.config import names
from experiments.harness import small_runs

# Every episode has the same layout, and the goal is 15 actions away: one in
# 3,700 random episodes reaches the goal.
TASK = 'MiniGrid-FourRooms-v0:fixed'
# During pre-training, every episode has another layout. Goals are removed,
# because an explorer would learn to avoid a goal, which ends the episode.
PRETRAINING_ENV = 'MiniGrid-FourRooms-v0:no_goal'
MAP_ENV = 'MiniGrid-FourRooms-v0:fixed:no_goal'

Job = small_runs.Job


@dataclasses.dataclass(frozen=True)
class Plan:
  """The runs of a demo.

  Attributes:
    seeds: the seeds; each has one pre-training run and several task runs.
    finetuning: whether R2D2 also learns the task from the weights of pi_p.
    pretraining_steps: actor steps of pre-training.
    task_steps: actor steps of each run that learns the task.
    episodes: evaluation episodes of each run and each row of the table.
    map_episodes: episodes of each heat map.
    settings: settings by name, which override the preset.
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
    """The run that is launched with several processes."""
    return self.job('R2D2 + BT', self.seeds[0])

  @property
  def maps(self) -> Job:
    """The job that evaluates a random policy and counts visits for the maps."""
    return self.job('random', self.seeds[0])

  @property
  def jobs(self) -> List[Job]:
    """The other runs; each run comes after the runs that it depends on."""
    algorithms = ['NGU', *reversed(self.learners), 'pi_p']
    jobs = [self.job(name, seed) for name in algorithms for seed in self.seeds]
    jobs.remove(self.launched)
    return [*jobs, self.maps]

  def job(self, algorithm: str, seed: int) -> Job:
    """Returns the job of an algorithm with a seed."""
    ngu = small_runs.SmallRun(
      'NGU',
      'ngu',
      PRETRAINING_ENV,
      self.pretraining_steps,
      self.own_settings(config_lib.NGUConfig),
      episodes=0,
    )
    r2d2 = small_runs.SmallRun(
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
        'record': True,
        **transferred,
      },
      'pi_p': {'kind': 'behavior', 'actor_steps': 0, **transferred},
      'random': {
        'kind': 'random',
        'actor_steps': 0,
        'map_env': MAP_ENV,
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
    """Returns the flags of `run_bt.py` for the launched run."""
    job = self.launched
    (pretraining,) = job.needed
    return [
      f'--preset={small_runs.PRESET}',
      *(f'--{name}={value}' for name, value in job.run.settings.items()),
      f'--env={TASK}',
      f'--behavior={pretraining.behavior(folder)}',
      f'--max_actor_steps={self.task_steps}',
      '--num_evaluators=0',  # The demo evaluates the agent after the run.
      f'--seed={job.seed}',
      f'--workdir={folder / job.run.workdir}',
    ]

  def own_settings(self, config_class: type) -> Dict[str, Any]:
    """Selects the overridden settings that exist in a configuration."""
    known = names.settings_of(config_class)
    return {k: v for k, v in self.settings.items() if k in known}


def label(job: Job) -> str:
  """Returns the label of a job for the terminal."""
  if job.run.map_env:
    return 'random and heat maps'
  return f'{job.run.algorithm} seed {job.seed}'
