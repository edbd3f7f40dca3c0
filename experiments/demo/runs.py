"""Executes the runs of a plan that have no result yet, and shows how far."""

import dataclasses
import pathlib
from typing import Any, ClassVar, List, Sequence

from experiments.demo import execution, progress
from experiments.demo import plan as plan_lib
from experiments.harness import hosts, tasks


@dataclasses.dataclass(frozen=True)
class Task:
  """A job of a plan, as the harness takes it."""

  job: plan_lib.Job
  plan: plan_lib.Plan

  is_evaluation: ClassVar[bool] = False  # Cores are good for all.

  @property
  def id(self) -> str:
    """The name of its result."""
    return self.job.name

  @property
  def needed(self) -> List['Task']:
    """The run whose behavior it uses, if it uses one."""
    needed = self.plan.pretraining_of(self.job)
    return [Task(needed, self.plan)] if needed else []

  def is_ready(self, folder: pathlib.Path) -> bool:
    """Returns whether the behavior is there that it needs."""
    return all(task.is_done(folder) for task in self.needed)

  def is_done(self, folder: pathlib.Path) -> bool:
    """Returns whether its result is there."""
    return execution.read(self.job, self.plan, folder) is not None

  def execute(self, folder: pathlib.Path, report: tasks.Report) -> None:
    """Executes it; reports actor steps, and the share solved lately."""
    report((0, 0.0))
    execution.execute(
      self.job, self.plan, folder, lambda *progress: report(progress)
    )


def missing(
  jobs: Sequence[plan_lib.Job], plan: plan_lib.Plan, folder: pathlib.Path
) -> List[Task]:
  """Returns what of some jobs of a plan has no result yet."""
  todo = [Task(job, plan) for job in jobs]
  return [task for task in todo if not task.is_done(folder)]


def complete(
  todo: Sequence[Task],
  plan: plan_lib.Plan,
  folder: pathlib.Path,
  *,
  processes: int = 2,
) -> int:
  """Executes jobs of a plan.

  Args:
    todo: the jobs.
    plan: what to run.
    folder: of the demo; it keeps the results.
    processes: jobs at a time.

  Returns:
    An exit code, after all that went wrong is printed.
  """
  line = progress.Line([task.job for task in todo], plan)
  return hosts.complete(
    folder,
    todo,
    processes=processes,
    say=line.say,
    on_done=lambda task: line.end(task.job, _outcome(task, folder)),
    on_news=lambda task, news: line.update(task.job, *news),
  )


def _outcome(task: Task, folder: pathlib.Path) -> str:
  """What a run that has ended came to."""
  result: Any = execution.read(task.job, task.plan, folder)
  seconds = f'{result["seconds"]:.0f} s'
  if task.job.kind == plan_lib.PRETRAINING:
    return f'has explored, in {seconds}'
  if task.job.kind == plan_lib.MAPS:
    return f'evaluated in {seconds}'
  return f'solves {result["evaluation"]["solved"]:.0%}, in {seconds}'
