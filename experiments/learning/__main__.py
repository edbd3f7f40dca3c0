"""Does behavior transfer do what it is for? Small worlds, ten seeds each.

Each claim is a table or several (`experiments/learning/claims.py`):

  exploration  NGU's policy visits more of a world than others do.
  transfer     BT solves hard worlds in a budget in which others do not.
  no_harm      BT loses nothing where the reward is easy to find.
  deception    BT helps although the behavior itself loses reward.
  ablation     Flights and extra action, apart and together.
  weights      Loading the behavior's weights, with and without BT.
  memory       The LSTM recalls what was seen before.

Each run is one process with one thread, and its seed reproduces it exactly. A
result that is there, in `--folder` or published with the code, is not made
again; after Ctrl-C the same command goes on. The order is by seed, so that all
algorithms have equally many whenever it is stopped. `--publish` adds the
results to the published ones and writes the tables into README.md.
"""

import functools
import os
import pathlib
from typing import Any, Callable, List, Set

from absl import flags as absl_flags

from bt_acme.cli import flags
from bt_acme.config import names
from experiments import pool
from experiments.learning import claims, execution, readme, report, results

FLAGS = absl_flags.FLAGS
absl_flags.DEFINE_list(
  'claims',
  list(claims.CLAIMS),
  f'Those to show, of {", ".join(claims.CLAIMS)}.',
)
absl_flags.DEFINE_integer('seeds', 10, 'Seeds of each algorithm.')
absl_flags.DEFINE_integer('jobs', os.cpu_count() or 1, 'Runs at a time.')
absl_flags.DEFINE_string('folder', 'runs/learning', 'Where results go.')
absl_flags.DEFINE_bool('run', True, 'Executes the runs that have no result.')
absl_flags.DEFINE_bool(
  'publish', False, 'Keeps the results with the code, and renders README.md.'
)


def _check_flags() -> None:
  for claim in FLAGS.claims:
    if claim not in claims.CLAIMS:
      raise ValueError(
        f'claims={claim!r} is unknown: {names.suggest(claim, claims.CLAIMS)}'
      )
  for name, value in (('seeds', FLAGS.seeds), ('jobs', FLAGS.jobs)):
    if value < 1:
      raise ValueError(f'{name}={value} must be positive.')


def complete(
  jobs: List[results.Job], folder: pathlib.Path, processes: int
) -> results.Results:
  """Executes the runs that have no result, and those that these build on.

  Args:
    jobs: the runs that are wanted.
    folder: keeps results and behaviors.
    processes: runs at a time.

  Returns:
    The results of all.
  """
  tables = (results.PUBLISHED, folder / 'results.csv')
  found = results.read(jobs, tables)
  missing = _with_behaviors([job for job in jobs if job not in found], folder)
  waiting = set(missing)

  def is_ready(job: results.Job) -> bool:
    behavior = job.run.behavior
    return behavior is None or results.Job(behavior, job.seed) not in waiting

  def on_news(job: results.Job, row: execution.Row) -> None:
    waiting.discard(job)
    results.add({job: row}, tables[-1])
    print(
      f'{len(missing) - len(waiting)} of {len(missing)}: {job}: solves '
      f'{row["solved"]:.0%}, {row["cells"]:.1f} cells, {row["seconds"]:.0f} s',
      flush=True,
    )

  pool.complete(
    missing,
    functools.partial(_execute, folder=folder),
    processes=processes,
    compiled=folder / 'compiled',
    is_ready=is_ready,
    on_news=on_news,
  )
  return results.read(jobs, tables)


def _with_behaviors(
  jobs: List[results.Job], folder: pathlib.Path
) -> List[results.Job]:
  """Puts pre-training that has left no behavior here before what needs it."""
  ordered: List[results.Job] = []
  known: Set[results.Job] = set()
  for job in jobs:
    behavior = job.run.behavior
    needed = [job]
    if behavior is not None:
      path = execution.behavior_path(behavior, job.seed, folder / 'behaviors')
      if not path.exists():
        needed.insert(0, results.Job(behavior, job.seed))
    for each in needed:
      if each not in known:
        known.add(each)
        ordered.append(each)
  return ordered


def _execute(
  job: results.Job, report_row: Callable[[Any], None], folder: pathlib.Path
) -> None:
  """Executes a run in a process of the pool."""
  report_row(execution.execute(job.run, job.seed, folder / 'behaviors'))


def main(argv: List[str]) -> int:
  del argv
  _check_flags()
  folder = pathlib.Path(FLAGS.folder).absolute()
  folder.mkdir(parents=True, exist_ok=True)
  seeds = range(FLAGS.seeds)
  tables = [table for table in claims.tables() if table.claim in FLAGS.claims]
  runs = dict.fromkeys(run for table in tables for run in table.runs)
  jobs = [results.Job(run, seed) for seed in seeds for run in runs]
  if FLAGS.run:
    found = complete(jobs, folder, FLAGS.jobs)
  else:
    found = results.read(jobs, (results.PUBLISHED, folder / 'results.csv'))
  print(report.report(tables, found, seeds))
  if FLAGS.publish:
    results.add(found, results.PUBLISHED)
    readme.render()
  return 0


if __name__ == '__main__':
  flags.run_main(main)
