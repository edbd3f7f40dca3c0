"""From no rewards to a task solved, in minutes.

1. NGU explores worlds of four rooms without any reward, once with each of three
   seeds. Each time its policy, pi_p, is exported, and plays the task as it is.
2. R2D2 and R2D2 with Behavior Transfer learn to reach a far goal, with three
   seeds each and within the same budget. R2D2 + BT brings along the pi_p of its
   seed. These runs take place two at a time, in one process each, and the seed
   decides every number.
3. The R2D2 + BT of the first seed is a run of the real program, with separate
   processes for replay server, actors, learner and coordinator.

The demo ends with a table, seed by seed, and three pictures: learning curves,
visited cells, and a film of the agent in which one sees who is in control.

Ctrl-C ends it. The same command goes on with what is missing.
"""

import os
import pathlib
import time
from typing import Callable, Dict, List, Sequence

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
  'The seeds. Each one pre-trains a behavior of its own and learns the task.',
)
absl_flags.DEFINE_bool(
  'finetuning',
  False,
  'R2D2 also learns the task from the weights of pi_p; this takes longer.',
)
absl_flags.DEFINE_string('workdir', 'runs/demo', 'Where everything goes.')

_INTERRUPTED = 130  # The exit code after Ctrl-C.

Launch = Callable[[str, Sequence[str]], int]


def run(
  plan: plan_lib.Plan,
  folder: pathlib.Path,
  *,
  launch: Launch = launching.launch,
) -> int:
  """Runs the demo, or what is missing of it.

  Args:
    plan: what to run.
    folder: where everything goes.
    launch: runs a launch script with flags and returns its exit code.

  Returns:
    An exit code.
  """
  environments.validate(plan_lib.TASK)
  seconds: Dict[str, float] = {}
  start = time.monotonic()
  print(
    f'== 1 of 3: NGU explores {plan_lib.WORLD} without rewards, for '
    f'{plan.pretraining_steps:,} actor steps; {", ".join(plan.learners)} learn '
    f'{plan_lib.TASK}, for {plan.task_steps:,} actor steps; '
    f'seeds {", ".join(map(str, plan.seeds))}',
    flush=True,
  )
  missing = [job for job in plan.jobs if not job.is_done(folder)]
  code = complete(missing, folder)
  if code:
    return code
  kept = len(plan.jobs) - len(missing)
  if kept:
    print(f'{kept} of {len(plan.jobs)} runs were there from before.')
  seconds['runs in one process'] = time.monotonic() - start

  start = time.monotonic()
  launched = plan.launched
  print(
    f'\n== 2 of 3: {plan_lib.label(launched)}, as a program of several '
    'processes',
    flush=True,
  )
  code = launch('run_bt.py', plan.flags(folder)) or complete(
    [] if launched.is_done(folder) else [launched], folder
  )
  if code:
    return code
  seconds['the program'] = time.monotonic() - start

  _show(plan, folder, seconds)
  return 0


def complete(
  jobs: Sequence[plan_lib.Job], folder: pathlib.Path, *, processes: int = 2
) -> int:
  """Executes runs, and shows how far they are.

  Args:
    jobs: the runs.
    folder: of the demo; it keeps the results.
    processes: runs at a time.

  Returns:
    An exit code, after all that went wrong is printed.
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
  """Returns what a run that has ended came to."""
  row = job.row(folder)
  seconds = f'{row["seconds"]:.0f} s'
  if job.run.kind == 'ngu':
    return f'has explored, in {seconds}'
  if job.run.map_world:
    return f'evaluated in {seconds}'
  return f'solves {row["solved"]:.0%}, in {seconds}'


def _show(
  plan: plan_lib.Plan, folder: pathlib.Path, seconds: Dict[str, float]
) -> None:
  """Draws the pictures and prints the table."""
  start = time.monotonic()
  print('\n== 3 of 3: the table and the pictures', flush=True)
  results = report.read(plan, folder)
  pictures = report.draw(plan, results, folder)
  print(f'\n{plan_lib.TASK}, {plan.task_steps:,} actor steps of the task\n')
  print(report.table(plan, results))
  print(f'\n{report.conclusion(plan, results)}\n')
  for title, path in pictures.items():
    print(f'{title + ":":<19}{min(os.path.relpath(path), str(path), key=len)}')
  seconds = {**seconds, 'pictures': time.monotonic() - start}
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
