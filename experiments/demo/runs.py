"""Executes the runs of a plan that have no result yet, and shows how far."""

import functools
import pathlib
from typing import Any, Callable, List, Sequence

from experiments import pool
from experiments.demo import execution, progress
from experiments.demo import plan as plan_lib


def complete(
  jobs: Sequence[plan_lib.Job],
  plan: plan_lib.Plan,
  folder: pathlib.Path,
  *,
  processes: int = 2,
) -> List[plan_lib.Job]:
  """Executes the jobs that have no result yet.

  Args:
    jobs: some of those of the plan.
    plan: what to run.
    folder: of the demo; it keeps the results.
    processes: jobs at a time.

  Returns:
    The jobs that were executed.

  Raises:
    RuntimeError: if a job fails; jobs that have ended keep their results.
  """
  missing = [job for job in jobs if execution.read(job, plan, folder) is None]
  line = progress.Line(missing, plan)

  def is_ready(job: plan_lib.Job) -> bool:
    needed = plan.pretraining_of(job)
    return needed is None or execution.read(needed, plan, folder) is not None

  pool.complete(
    missing,
    functools.partial(_execute, plan=plan, folder=folder),
    processes=processes,
    is_ready=is_ready,
    on_news=lambda job, news: line.update(job, *news),
    on_end=lambda job: line.end(job, _outcome(job, plan, folder)),
  )
  return missing


def _execute(
  job: plan_lib.Job,
  report: Callable[[Any], None],
  plan: plan_lib.Plan,
  folder: pathlib.Path,
) -> None:
  """Executes a job in a process of the pool."""
  report((0, 0.0))
  execution.execute(
    job, plan, folder, lambda steps, solved: report((steps, solved))
  )


def _outcome(
  job: plan_lib.Job, plan: plan_lib.Plan, folder: pathlib.Path
) -> str:
  """What a run that has ended came to."""
  result = execution.read(job, plan, folder)
  assert result is not None
  seconds = f'{result["seconds"]:.0f} s'
  if job.kind == plan_lib.PRETRAINING:
    return f'has explored, in {seconds}'
  if job.kind == plan_lib.MAPS:
    return f'evaluated in {seconds}'
  return f'solves {result["evaluation"]["solved"]:.0%}, in {seconds}'
