"""Demonstrates behavior transfer with a behavior that comes with the package.

1. The behavior `minigrid-explorer`, pre-trained without rewards, plays three
   tasks without any learning. A video shows one of its episodes.
2. R2D2 and R2D2 with Behavior Transfer learn each task with three seeds and the
   same budget. Two runs are executed at a time, each in a single process. On
   one processor type with one set of package versions, the seed fully
   determines the results.

At the end, the demo prints a table with one row per task and draws learning
curves and a video that shows whether the agent or the behavior is in control.

`--bank` compares three ways to use several behaviors: only `minigrid-explorer`,
and a bank of it with four behaviors that rarely help, of which each episode
uses one: a random one, or one chosen by learned priorities.

`--full` also pre-trains: NGU explores environments with four rooms without any
reward, with three seeds. R2D2 + BT then learns to reach a distant goal with
the policy of its seed. Its first run is a launched run, with separate processes
for the replay server, actors, learner and coordinator.

Ctrl-C stops the demo. Rerun the same command to finish the remaining runs.
"""

import dataclasses
import os
import pathlib
import time

from experiments import command_line, launching
from experiments.demo import plan as plan_lib
from experiments.demo import report
from experiments.harness import execution, records, small_runs

_INTERRUPTED = 130  # The exit code after Ctrl-C.
_PROCESSES = 2


@dataclasses.dataclass(frozen=True)
class DemoConfig:
  """Settings of the demo.

  Attributes:
    seeds: Seeds, separated by commas.
    full: Whether to pre-train a behavior for each seed instead of using the one
      that comes with the package, which takes additional time.
    bank: Whether to compare uniform draws from a bank of five behaviors with
      learned priorities, instead of comparing R2D2 with R2D2 + BT.
    finetuning: Whether R2D2 also learns the tasks from the weights of pi_p,
      which takes additional time.
    workdir: Output directory.
  """

  seeds: str = '0,1,2'
  full: bool = False
  bank: bool = False
  finetuning: bool = False
  workdir: str = 'runs/demo'


def run(
  plan: plan_lib.Plan, *, launch: launching.Launch = launching.launch
) -> int:
  """Runs the demo and reuses existing results.

  Args:
    plan: the runs of the demo.
    launch: runs a launch script with flags and returns its exit code.

  Returns:
    An exit code.
  """
  names = ', '.join(task.replace('MiniGrid-', '') for task in plan.tasks)
  behavior = plan.behavior
  explored = (
    f'{behavior} plays {names} without learning'
    if plan.is_shipped
    else f'NGU explores {behavior.env} without rewards, for '
    f'{behavior.actor_steps:,} actor steps'
  )
  learned = (
    f'{" and ".join(plan.learners)} learn {names}, for {plan.task_steps:,} '
    f'actor steps; seeds {", ".join(map(str, plan.seeds))}'
  )
  seconds: dict[str, float] = {}
  evaluations = records.with_needed(plan.evaluations)
  stages = (
    ('behavior', f'== 1 of 3: {explored}', evaluations),
    ('learning', f'\n== 2 of 3: {learned}', plan.learning),
    *(
      ('launched run', f'{run}, with several processes', [run])
      for run in plan.launched
    ),
  )
  for name, title, runs in stages:
    print(title, flush=True)
    start = time.monotonic()
    code = 0
    if runs == plan.launched:
      code = launch('run_bt.py', plan.flags)
    code = code or _complete_missing(runs, plan.folder)
    if code:
      return code
    seconds[name] = time.monotonic() - start
    if name == 'behavior':
      _print_paths(report.draw_behavior(plan))
  _show(plan, seconds)
  return 0


def _complete_missing(
  runs: list[small_runs.SmallRun], folder: pathlib.Path
) -> int:
  """Executes the runs that have no result."""
  missing = [run for run in runs if not run.is_done(folder)]
  if len(missing) < len(runs):
    reused = len(runs) - len(missing)
    print(f'Reused the results of {reused} of {len(runs)} runs.')
  return execution.complete(missing, folder, processes=_PROCESSES)


def _show(plan: plan_lib.Plan, seconds: dict[str, float]) -> None:
  """Draws the figures and prints the table."""
  start = time.monotonic()
  print('\n== 3 of 3: the table and the figures', flush=True)
  pictures = report.draw(plan)
  print(
    f'\nEpisodes solved after {plan.task_steps:,} actor steps of each task, in '
    f'percent, for seeds {" ".join(map(str, plan.seeds))}\n\n'
    f'{report.table(plan)}\n\n{report.conclusion(plan)}\n'
  )
  _print_paths(pictures)
  seconds = {**seconds, 'figures': time.monotonic() - start}
  parts = ', '.join(f'{name} {value:.0f} s' for name, value in seconds.items())
  print(f'{"Wall time:":<35} {sum(seconds.values()):.0f} s ({parts})')


def _print_paths(paths: dict[str, pathlib.Path]) -> None:
  for title, path in paths.items():
    shortest = min(os.path.relpath(path), str(path), key=len)
    print(f'{title + ":":<35} {shortest}', flush=True)


def main(config: DemoConfig) -> int:
  """Runs the demo that the settings select, and returns an exit code."""
  if config.bank and (config.full or config.finetuning):
    raise ValueError(
      'bank=True excludes full and finetuning. Remove --bank, or the others.'
    )
  plan = plan_lib.read(
    'full' if config.full else 'bank' if config.bank else 'shipped'
  )
  excluded = () if config.finetuning else (plan_lib.FINE_TUNING,)
  plan = dataclasses.replace(
    plan,
    seeds=command_line.seeds(config.seeds.split(',')),
    folder=pathlib.Path(config.workdir).absolute(),
    arms=tuple(arm for arm in plan.arms if arm.algorithm not in excluded),
  )
  try:
    return run(plan)
  except KeyboardInterrupt:
    print('\nInterrupted. Rerun the same command to finish the remaining runs.')
    return _INTERRUPTED


if __name__ == '__main__':
  command_line.run(DemoConfig, main)
