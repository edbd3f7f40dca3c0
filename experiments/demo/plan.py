"""The environments, budgets, settings and runs of the demo.

`plans.json` has the tasks and algorithms of each demo:

  shipped  The tasks of the behavior that comes with the package. Each has a
           single layout; in other layouts, the behavior is better or worse.
  full     Every episode of the task has the same layout. Its goal is 15 actions
           away, and one in 3,700 random episodes reaches it. Every episode of
           pre-training has another layout. Its goals are removed, because an
           explorer would learn to avoid a goal, which ends the episode.
  bank     The other behaviors of the bank rarely reach the reward. Their extra
           actions, together with that of the first one, would be too much to
           learn, so they only fly (`behavior_roles`).
"""

import dataclasses
import json
import pathlib
from collections.abc import Sequence
from typing import Any

from experiments.harness import small_runs

BT, UNIFORM, LEARNED = 'R2D2 + BT', 'bank, uniform', 'bank, learned'
FINE_TUNING = 'fine-tuning'
_PATH = pathlib.Path(__file__).with_name('plans.json')


@dataclasses.dataclass(frozen=True)
class Plan:
  """The runs of a demo.

  Attributes:
    tasks: the environments to learn.
    arms: a run of each algorithm, to which `run` adds task and seed. The first
      two are a random policy and pi_p without learning; the others learn.
    seeds: the seeds; each has one run of each algorithm on each task. If pi_p
      is pre-trained, the run of R2D2 + BT with the first seed is launched with
      several processes.
    folder: the output directory.
  """

  tasks: tuple[str, ...]
  arms: tuple[small_runs.SmallRun, ...]
  seeds: tuple[int, ...] = (0, 1, 2)
  folder: pathlib.Path = pathlib.Path('runs/demo')

  @property
  def behavior(self) -> Any:
    """The name of a shipped behavior, or the run that pre-trains another."""
    return self.arms[0].behavior

  @property
  def is_shipped(self) -> bool:
    """Whether the behavior comes with the package."""
    return isinstance(self.behavior, str)

  @property
  def bank(self) -> list[small_runs.Behavior]:
    """The behaviors that the last algorithm transfers; empty for only one."""
    behaviors = self.arms[-1].behaviors
    return behaviors if len(behaviors) > 1 else []

  @property
  def learners(self) -> list[str]:
    """The algorithms that learn the tasks."""
    return [arm.algorithm for arm in self.arms[2:]]

  @property
  def task_steps(self) -> int:
    """The actor steps of each run that learns a task."""
    return self.arms[-1].actor_steps

  @property
  def launched(self) -> list[small_runs.SmallRun]:
    """The run with several processes, if there is one."""
    run = self.run(BT, self.tasks[0], self.seeds[0])
    return [] if self.is_shipped else [run]

  @property
  def evaluations(self) -> list[small_runs.SmallRun]:
    """The evaluations of a random policy and of pi_p without learning."""
    policies = ('pi_p', 'random')
    return [run for name in policies for run in self.runs_of(name, self.tasks)]

  @property
  def learning(self) -> list[small_runs.SmallRun]:
    """The runs that learn a task, except for the launched run.

    The runs of all algorithms with one seed are neighbors, so that a demo that
    is stopped early has something to compare.
    """
    runs = [
      self.run(name, task, seed)
      for seed in self.seeds
      for task in self.tasks
      for name in reversed(self.learners)
    ]
    return [run for run in runs if run not in self.launched]

  def runs_of(
    self, algorithm: str, tasks: Sequence[str]
  ) -> list[small_runs.SmallRun]:
    """Returns the runs of an algorithm on some tasks, with each of its seeds.

    A random policy and a shipped behavior have a single seed.
    """
    is_same = algorithm == 'random' or (algorithm == 'pi_p' and self.is_shipped)
    seeds = self.seeds[:1] if is_same else self.seeds
    return [self.run(algorithm, task, seed) for task in tasks for seed in seeds]

  def run(self, algorithm: str, task: str, seed: int) -> small_runs.SmallRun:
    """Returns the run of an algorithm, or of `random` or `pi_p`, on a task."""
    (arm,) = (arm for arm in self.arms if arm.algorithm == algorithm)
    run = dataclasses.replace(arm, env=task, seed=seed)
    if algorithm == BT and not self.is_shipped and seed == self.seeds[0]:
      run = dataclasses.replace(run, kind='program', workdir=f'program_{seed}')
    return run

  def results(
    self, algorithm: str, tasks: Sequence[str]
  ) -> list[small_runs.Result]:
    """Reads the results of an algorithm on some tasks, with each seed."""
    found = self.runs_of(algorithm, tasks)
    return [run.result(self.folder) or {} for run in found]

  @property
  def flags(self) -> list[str]:
    """The flags of `run_bt.py` for the launched run."""
    (run,) = self.launched
    return [
      f'--preset={run.preset}',
      *(f'--{name}={value}' for name, value in run.settings.items()),
      f'--env={run.env}',
      f'--behavior={",".join(run.transferred(self.folder))}',
      f'--max_actor_steps={run.actor_steps}',
      '--num_evaluators=0',  # The demo evaluates the agent after the run.
      f'--seed={run.seed}',
      f'--workdir={self.folder / run.workdir}',
    ]


def read(name: str) -> Plan:
  """Reads a plan of `plans.json`, whose arms have some attributes in common."""
  data = json.loads(_PATH.read_text())[name]
  shared = {'env': '', **data['shared']}
  arms = tuple(small_runs.of_data({**shared, **arm}) for arm in data['arms'])
  return Plan(tuple(data['tasks']), arms)
