"""Executes the runs that have no result yet, and those that they build on."""

import functools
import pathlib
from typing import Iterable, List

from experiments.harness import hosts
from experiments.learning import results


def complete(
  jobs: List[results.Job], folder: pathlib.Path, *, processes: int
) -> int:
  """Executes the runs that have no result, and those that these build on.

  Args:
    jobs: the runs that are wanted.
    folder: keeps results and behaviors, for any number of workers.
    processes: runs at a time.

  Returns:
    An exit code, after all that went wrong is printed.
  """
  found = results.read(jobs, results.tables(folder))
  missing = _with_behaviors([job for job in jobs if job not in found], folder)
  say = functools.partial(print, flush=True)
  left = set(missing)

  def on_done(job: results.Job) -> None:
    left.discard(job)
    (row,) = results.read([job], results.tables(folder)).values()
    say(
      f'{len(missing) - len(left)} of {len(missing)}: {job}: solves '
      f'{row["solved"]:.0%}, {row["cells"]:.1f} cells, {row["seconds"]:.0f} s'
    )

  return hosts.complete(
    folder, missing, processes=processes, say=say, on_done=on_done
  )


def _with_behaviors(
  jobs: Iterable[results.Job], folder: pathlib.Path
) -> List[results.Job]:
  """Puts pre-training that has left no behavior here before what needs it."""
  return list(
    dict.fromkeys(
      each
      for job in jobs
      for each in (*(() if job.is_ready(folder) else job.needed), job)
    )
  )
