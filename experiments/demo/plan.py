"""The environments, budgets, settings and runs of the demo."""

import dataclasses
import pathlib
from typing import Any, Mapping, Sequence

from bt_acme import config as config_lib
from bt_acme.config import names
from experiments.harness import small_runs

BT, UNIFORM, LEARNED = 'R2D2 + BT', 'bank, uniform', 'bank, learned'
# Settings of R2D2 + BT with a bank of behaviors.
_BANK_SETTINGS = {
  UNIFORM: {'behavior_draws': 'episode'},
  LEARNED: {
    'flight_priorities': 'learned',
    'priority_signal': 'discovery_then_novelty',
  },
}


@dataclasses.dataclass(frozen=True)
class Plan:
  """The runs of a demo.

  The defaults are the tasks of the behavior that comes with the package. Each
  has a single layout; in other layouts, the behavior is better or worse.

  Attributes:
    seeds: the seeds; each has one run of each algorithm on each task.
    tasks: the environments to learn.
    behavior: the name of a behavior that comes with the package; empty to
      pre-train one behavior per seed, and to launch the run of R2D2 + BT of the
      first seed with several processes.
    bank: other behaviors, by name or pre-training run. R2D2 + BT then also
      learns with all of them, with uniform draws and with learned priorities.
    finetuning: whether R2D2 also learns the tasks from the weights of pi_p.
    pretraining_env: the environment of pre-training.
    pretraining_steps: actor steps of pre-training.
    task_steps: actor steps of each run that learns a task.
    episodes: evaluation episodes of each run.
    map_env: the environment of the heat maps of visited cells; empty for none.
    map_episodes: episodes of each heat map; 0 without any.
    preset: the preset of all runs.
    settings: settings by name, which override the preset.
  """

  seeds: tuple[int, ...] = (0, 1, 2)
  tasks: tuple[str, ...] = (
    'MiniGrid-DoorKey-8x8-v0:fixed=6',
    'MiniGrid-SimpleCrossingS9N2-v0:fixed=5',
    'MiniGrid-Unlock-v0:fixed=6',
  )
  behavior: str = 'minigrid-explorer'
  bank: tuple[small_runs.Behavior, ...] = ()
  finetuning: bool = False
  pretraining_env: str = ''
  pretraining_steps: int = 0
  task_steps: int = 20_000
  episodes: int = 50
  map_env: str = ''
  map_episodes: int = 0
  preset: str = 'minigrid_pretrained'
  settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)

  @property
  def learners(self) -> list[str]:
    """The algorithms that learn the tasks."""
    if self.bank:
      return [BT, UNIFORM, LEARNED]
    return ['R2D2', *(['fine-tuning'] if self.finetuning else []), BT]

  @property
  def launched(self) -> list[small_runs.SmallRun]:
    """The run with several processes, if there is one."""
    run = self.run(BT, self.tasks[0], self.seeds[0])
    return [] if self.behavior else [run]

  @property
  def pretraining(self) -> list[small_runs.SmallRun]:
    """The pre-training runs, on which the other runs depend."""
    return list(dict.fromkeys(each for run in self.runs for each in run.needed))

  @property
  def evaluations(self) -> list[small_runs.SmallRun]:
    """The evaluations of a random policy and of pi_p without learning."""
    return [
      run
      for task in self.tasks
      for policy in ('pi_p', 'random')
      for run in self.runs_of(policy, [task])
    ]

  @property
  def learning(self) -> list[small_runs.SmallRun]:
    """The runs that learn a task, except for the launched run."""
    runs = (
      self.run(name, task, seed)
      for name in reversed(self.learners)
      for seed in self.seeds
      for task in self.tasks
    )
    return [run for run in runs if run not in self.launched]

  @property
  def runs(self) -> list[small_runs.SmallRun]:
    """All runs except pre-training."""
    return [*self.evaluations, *self.learning, *self.launched]

  def runs_of(
    self, algorithm: str, tasks: Sequence[str]
  ) -> list[small_runs.SmallRun]:
    """Returns the runs of an algorithm on some tasks, with each of its seeds.

    A random policy and a shipped behavior have a single seed.
    """
    is_same = algorithm == 'random' or (algorithm == 'pi_p' and self.behavior)
    seeds = self.seeds[:1] if is_same else self.seeds
    return [self.run(algorithm, task, seed) for task in tasks for seed in seeds]

  def run(self, algorithm: str, task: str, seed: int) -> small_runs.SmallRun:
    """Returns the run of an algorithm, or of `random` or `pi_p`, on a task."""
    run: dict[str, Any] = {
      'kind': 'r2d2',
      'actor_steps': self.task_steps,
      'settings': self._own_settings(config_lib.R2D2Config),
      'behavior': self.behavior or self._ngu(),
    }
    if algorithm == 'R2D2':
      del run['behavior']
    elif algorithm == 'fine-tuning':
      run['init'] = 'full'
    elif algorithm == 'pi_p':
      run.update(kind='behavior', actor_steps=0, record=bool(self.behavior))
    elif algorithm == 'random':
      maps = {'map_env': self.map_env, 'map_episodes': self.map_episodes}
      run.update(kind='random', actor_steps=0, **maps)
    else:
      settings = self._own_settings(config_lib.BTConfig)
      run.update(kind='bt', settings=settings, record=True)
    if algorithm in _BANK_SETTINGS:
      # The extra actions of all behaviors would be too much to learn.
      roles = ','.join(['both', *('fly' for _ in self.bank)])
      run['behavior'] = (self.behavior, *self.bank)
      run['settings'].update(_BANK_SETTINGS[algorithm], behavior_roles=roles)
    if algorithm == BT and not self.behavior and seed == self.seeds[0]:
      run.update(kind='program', workdir=f'program_{seed}')
    return small_runs.SmallRun(
      algorithm,
      env=task,
      episodes=self.episodes,
      preset=self.preset,
      seed=seed,
      **run,
    )

  def flags(self, run: small_runs.SmallRun, folder: pathlib.Path) -> list[str]:
    """Returns the flags of `run_bt.py` for the launched run."""
    return [
      f'--preset={self.preset}',
      *(f'--{name}={value}' for name, value in run.settings.items()),
      f'--env={run.env}',
      f'--behavior={",".join(run.transferred(folder))}',
      f'--max_actor_steps={self.task_steps}',
      '--num_evaluators=0',  # The demo evaluates the agent after the run.
      f'--seed={run.seed}',
      f'--workdir={folder / run.workdir}',
    ]

  def _ngu(self) -> small_runs.SmallRun:
    return small_runs.SmallRun(
      'NGU',
      'ngu',
      self.pretraining_env,
      self.pretraining_steps,
      settings=self._own_settings(config_lib.NGUConfig),
      preset=self.preset,
      episodes=0,
    )

  def _own_settings(self, config_class: type) -> dict[str, Any]:
    """Selects the overridden settings that exist in a configuration."""
    known = names.settings_of(config_class)
    return {k: v for k, v in self.settings.items() if k in known}


# Uses no shipped behavior. Every episode of the task has the same layout. Its
# goal is 15 actions away, and one in 3,700 random episodes reaches it.
FULL = Plan(
  tasks=('MiniGrid-FourRooms-v0:fixed',),
  behavior='',
  # Every episode has another layout. Goals are removed, because an explorer
  # would learn to avoid a goal, which ends the episode.
  pretraining_env='MiniGrid-FourRooms-v0:no_goal',
  pretraining_steps=40_000,
  task_steps=40_000,
  episodes=100,
  map_env='MiniGrid-FourRooms-v0:fixed:no_goal',
  map_episodes=32,
  preset='minigrid',
)

# The other behaviors of the bank rarely reach the reward.
BANK = Plan(
  tasks=(
    'MiniGrid-MultiRoom-N4-S5-v0:fixed=3',
    'MiniGrid-MultiRoom-N4-S5-v0:fixed=5',
  ),
  bank=(
    'action_repeat',
    'uniform',
    *(
      small_runs.SmallRun(f'NGU in {name}', 'ngu', env, 10_000, episodes=0)
      for name, env in (
        ('rooms', 'MiniGrid-FourRooms-v0:no_goal'),
        ('crossings', 'MiniGrid-SimpleCrossingS9N2-v0:no_goal'),
      )
    ),
  ),
  task_steps=40_000,
  preset='minigrid',
  settings={'extra_action_margin': 0.1},
)
