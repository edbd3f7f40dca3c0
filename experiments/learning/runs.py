"""Executes the runs that have no result yet, and those that they build on."""

import functools
import pathlib
from typing import Any, Callable, List, Set

from experiments import pool
from experiments.learning import execution, results


def complete(
  jobs: List[results.Job], folder: pathlib.Path, *, processes: int
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
