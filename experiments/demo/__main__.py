"""Demonstrates behavior transfer, from pre-training to a solved task.

1. NGU explores environments with four rooms without any reward, with three
   seeds. Each resulting policy, pi_p, is exported and evaluated on the task
   without further training.
2. R2D2 and R2D2 with Behavior Transfer learn to reach a distant goal, with
   three seeds each and the same budget. R2D2 + BT uses the pi_p of its seed.
   Two runs are executed at a time, each in a single process. On one processor
   type with one set of package versions, the seed fully determines the results.
3. The R2D2 + BT run of the first seed is a launched run, with separate
   processes for the replay server, actors, learner and coordinator.

At the end, the demo prints a table with one row per seed and draws learning
curves, visited cells, and a video that shows whether the agent or the behavior
is in control.

Ctrl-C stops the demo. Rerun the same command to finish the remaining runs.
"""

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
  'Seeds, separated by commas. Each seed pre-trains its own behavior and then '
  'learns the task.',
)
absl_flags.DEFINE_bool(
  'finetuning',
  False,
  'Whether R2D2 also learns the task from the weights of pi_p, which takes '
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
  environments.validate(plan_lib.TASK)
  seconds: Dict[str, float] = {}
  start = time.monotonic()
  print(
    f'== 1 of 3: NGU explores {plan_lib.PRETRAINING_ENV} without rewards, for '
    f'{plan.pretraining_steps:,} actor steps; {", ".join(plan.learners)} learn '
    f'{plan_lib.TASK}, for {plan.task_steps:,} actor steps; '
    f'seeds {", ".join(map(str, plan.seeds))}',
    flush=True,
  )
  missing = [job for job in plan.jobs if not job.is_done(folder)]
  code = complete(missing, folder)
  if code:
    return code
  reused = len(plan.jobs) - len(missing)
  if reused:
    print(f'Reused the results of {reused} of {len(plan.jobs)} runs.')
  seconds['single-process runs'] = time.monotonic() - start

  start = time.monotonic()
  launched = plan.launched
  print(
    f'\n== 2 of 3: {plan_lib.label(launched)}, as a launched run with several '
    'processes',
    flush=True,
  )
  code = launch('run_bt.py', plan.flags(folder)) or complete(
    [] if launched.is_done(folder) else [launched], folder
  )
  if code:
    return code
  seconds['launched run'] = time.monotonic() - start

  _show(plan, folder, seconds)
  return 0


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
  if job.run.map_env:
    return f'evaluated in {seconds}'
  return f'solves {row["solved"]:.0%} of the episodes, in {seconds}'


def _show(
  plan: plan_lib.Plan, folder: pathlib.Path, seconds: Dict[str, float]
) -> None:
  """Draws the figures and prints the table."""
  start = time.monotonic()
  print('\n== 3 of 3: the table and the figures', flush=True)
  results = report.read(plan, folder)
  pictures = report.draw(plan, results, folder)
  print(f'\n{plan_lib.TASK}, {plan.task_steps:,} actor steps of the task\n')
  print(report.table(plan, results))
  print(f'\n{report.conclusion(plan, results)}\n')
  for title, path in pictures.items():
    print(f'{title + ":":<19}{min(os.path.relpath(path), str(path), key=len)}')
  seconds = {**seconds, 'figures': time.monotonic() - start}
  parts = ', '.join(f'{name} {value:.0f} s' for name, value in seconds.items())
  print(f'{"Wall time:":<19}{sum(seconds.values()):.0f} s ({parts})')


def main(argv: List[str]) -> int:
  del argv
  plan = plan_lib.Plan(
    seeds=seeds.read(FLAGS.seeds), finetuning=FLAGS.finetuning
  )
  folder = pathlib.Path(FLAGS.workdir).absolute()
  try:
    return run(plan, folder)
  except KeyboardInterrupt:
    print('\nInterrupted. Rerun the same command to finish the remaining runs.')
    return _INTERRUPTED


if __name__ == '__main__':
  flags.run_main(main)
