"""The state of the runs, in one line."""

import datetime
import math
import sys
import time
from typing import Any, Dict, Sequence, Tuple

from bt_acme.runtime import terminal
from experiments.demo import plan as plan_lib

_SECONDS = {True: 1.0, False: 10.0}  # Between two lines, on a terminal or not.


class ProgressLine:
  """Says how far the runs are, and how long they are going to take."""

  def __init__(self, jobs: Sequence[plan_lib.Job]):
    """Begins with nothing done.

    Args:
      jobs: all runs that are to be done.
    """
    self._num_jobs = len(jobs)
    self._num_done = 0
    self._all_steps = sum(job.run.actor_steps for job in jobs)
    self._running: Dict[plan_lib.Job, Tuple[int, float]] = {}
    self._steps_done = 0  # Those of runs that have ended.
    # When the first steps were reported, and how many these were. What comes
    # before, imports and compilation, says nothing about speed.
    self._start = math.nan
    self._first_steps = 0
    self._next_time = -math.inf
    self._live = sys.stdout.isatty()

  def update(self, job: plan_lib.Job, steps: int, recent: float) -> None:
    """Takes in how far a run is.

    Args:
      job: the run.
      steps: actor steps taken.
      recent: mean return of the recent episodes; NaN where no task is learned.
    """
    self._running[job] = steps, recent
    if steps and math.isnan(self._start):
      self._start, self._first_steps = time.monotonic(), self._steps()
    if time.monotonic() >= self._next_time:
      self._next_time = time.monotonic() + _SECONDS[self._live]
      self._write(self.text(time.monotonic() - self._start))

  def end(self, job: plan_lib.Job, text: str) -> None:
    """Takes in the end of a run, and leaves a line about it."""
    self._running.pop(job, None)
    self._steps_done += job.run.actor_steps
    self._num_done += 1
    self.say(f'{plan_lib.label(job)}: {text}')

  def say(self, text: Any) -> None:
    """Leaves a line about anything else."""
    clear = terminal.render_live('') if self._live else ''
    print(f'{clear}{text}', flush=True)

  def text(self, seconds: float) -> str:
    """Composes the line.

    Args:
      seconds: since the first steps were reported.
    """
    steps = self._steps()
    new_steps = steps - self._first_steps
    parts = [f'{self._num_done} of {self._num_jobs} runs done']
    if new_steps > 0 and seconds > 0:
      steps_left = self._all_steps - steps
      left = round(max(steps_left, 0) * seconds / new_steps)
      parts[0] += f', {datetime.timedelta(seconds=left)} left'
    for job, (job_steps, recent) in self._running.items():
      text = plan_lib.label(job)
      if job.run.actor_steps:
        text += f' {job_steps / job.run.actor_steps:.0%}'
      if job_steps and not math.isnan(recent):
        text += f', return {recent:.2f}'
      parts.append(text)
    return ' | '.join(parts)

  def _steps(self) -> int:
    """Actor steps of all runs so far."""
    return self._steps_done + sum(steps for steps, _ in self._running.values())

  def _write(self, text: str) -> None:
    print(
      terminal.render_live(text) if self._live else text,
      end='' if self._live else '\n',
      flush=True,
    )
