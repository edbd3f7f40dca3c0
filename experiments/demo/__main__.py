"""Demonstrates behavior transfer with a behavior that comes with the package.

1. The behavior `minigrid-explorer`, pre-trained without rewards, plays three
   tasks without any learning. A video shows one of its episodes.
2. R2D2 and R2D2 with Behavior Transfer learn each task with three seeds and the
   same budget. Two runs are executed at a time, each in a single process. On
   one processor type with one set of package versions, the seed fully
   determines the results.

At the end, the demo prints a table with one row per task and draws learning
curves and a video that shows whether the agent or the behavior is in control.

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
from typing import Dict, List, Sequence

from absl import flags as absl_flags

from bt_acme import environments
from bt_acme.cli import flags
from experiments import launching, seeds
from experiments.demo import plan as plan_lib
from experiments.demo import progress, report
from experiments.harness import driver

FLAGS = absl_flags.FLAGS
absl_flags.DEFINE_list(
  'seeds',
  ['0', '1', '2'],
  'Seeds, separated by commas.',
)
absl_flags.DEFINE_bool(
  'full',
  False,
  'Whether to pre-train a behavior for each seed instead of using the one that '
  'comes with the package, which takes additional time.',
)
absl_flags.DEFINE_bool(
  'finetuning',
  False,
  'Whether R2D2 also learns the tasks from the weights of pi_p, which takes '
  'additional time.',
)
absl_flags.DEFINE_string('workdir', 'runs/demo', 'Output directory.')

_INTERRUPTED = 130  # The exit code after Ctrl-C.


def run(
  plan: plan_lib.Plan,
  folder: pathlib.Path,
  *,
  launch: launching.Launch = launching.launch,
) -> int:
  """Runs the demo and reuses existing results.

  Args:
    plan: the runs of the demo.
    folder: the output directory.
    launch: runs a launch script with flags and returns its exit code.

  Returns:
    An exit code.
  """
  for task in plan.tasks:
    environments.validate(task)
  start = time.monotonic()
  names = ', '.join(task.replace('MiniGrid-', '') for task in plan.tasks)
  if plan.behavior:
    print(
      f'== 1 of 3: {plan.behavior} plays {names} without learning', flush=True
    )
  else:
    print(
      f'== 1 of 3: NGU explores {plan.pretraining_env} without rewards, for '
      f'{plan.pretraining_steps:,} actor steps',
      flush=True,
    )
  code = _complete_missing([*plan.pretraining, *plan.evaluations], folder)
  if code:
    return code
  for title, path in report.draw_behavior(plan, folder).items():
    print(f'{title}: {_relative(path)}', flush=True)
  seconds = {'behavior': time.monotonic() - start}

  start = time.monotonic()
  print(
    f'\n== 2 of 3: {" and ".join(plan.learners)} learn {names}, for '
    f'{plan.task_steps:,} actor steps; seeds {", ".join(map(str, plan.seeds))}',
    flush=True,
  )
  code = _complete_missing(plan.learning, folder)
  if code:
    return code
  seconds['learning'] = time.monotonic() - start

  if plan.launched:
    start = time.monotonic()
    print(
      f'{plan_lib.label(plan.launched)}, with several processes', flush=True
    )
    code = launch(
      'run_bt.py', plan.flags(plan.launched, folder)
    ) or _complete_missing([plan.launched], folder)
    if code:
      return code
    seconds['launched run'] = time.monotonic() - start

  _show(plan, folder, seconds)
  return 0


def _complete_missing(
  jobs: Sequence[plan_lib.Job], folder: pathlib.Path
) -> int:
  """Executes the runs that have no result."""
  missing = [job for job in jobs if not job.is_done(folder)]
  if len(missing) < len(jobs):
    reused = len(jobs) - len(missing)
    print(f'Reused the results of {reused} of {len(jobs)} runs.')
  return complete(missing, folder)


def complete(
  jobs: Sequence[plan_lib.Job], folder: pathlib.Path, *, processes: int = 2
) -> int:
  """Executes runs and shows their progress.

  Args:
    jobs: the runs.
    folder: the output directory of the demo.
    processes: number of runs at a time.

  Returns:
    An exit code; failures have been printed.
  """
  line = progress.ProgressLine(jobs)
  return driver.complete(
    folder,
    jobs,
    processes=processes,
    say=line.say,
    on_done=lambda job: line.end(job, _outcome(job, folder)),
    on_news=lambda job, news: line.update(job, *news),
  )


def _outcome(job: plan_lib.Job, folder: pathlib.Path) -> str:
  """Describes the outcome of a finished run."""
  row = job.row(folder)
  seconds = f'{row["seconds"]:.0f} s'
  if job.run.kind == 'ngu':
    return f'explored in {seconds}'
  return f'solves {row["solved"]:.0%} of the episodes, in {seconds}'


def _show(
  plan: plan_lib.Plan, folder: pathlib.Path, seconds: Dict[str, float]
) -> None:
  """Draws the figures and prints the table."""
  start = time.monotonic()
  print('\n== 3 of 3: the table and the figures', flush=True)
  results = report.read(plan, folder)
  pictures = report.draw(plan, results, folder)
  print(
    f'\nEpisodes solved after {plan.task_steps:,} actor steps of each task, in '
    f'percent, for seeds {" ".join(map(str, plan.seeds))}\n'
  )
  print(report.table(plan, results))
  print(f'\n{report.conclusion(plan, results)}\n')
  for title, path in pictures.items():
    print(f'{title + ":":<27}{_relative(path)}')
  seconds = {**seconds, 'figures': time.monotonic() - start}
  parts = ', '.join(f'{name} {value:.0f} s' for name, value in seconds.items())
  print(f'{"Wall time:":<27}{sum(seconds.values()):.0f} s ({parts})')


def _relative(path: pathlib.Path) -> str:
  return min(os.path.relpath(path), str(path), key=len)


def main(argv: List[str]) -> int:
  del argv
  plan = dataclasses.replace(
    plan_lib.FULL if FLAGS.full else plan_lib.Plan(),
    seeds=seeds.read(FLAGS.seeds),
    finetuning=FLAGS.finetuning,
  )
  folder = pathlib.Path(FLAGS.workdir).absolute()
  try:
    return run(plan, folder)
  except KeyboardInterrupt:
    print('\nInterrupted. Rerun the same command to finish the remaining runs.')
    return _INTERRUPTED


if __name__ == '__main__':
  flags.run_main(main)
