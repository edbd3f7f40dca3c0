"""Shows the progress of all runs in one line."""

import datetime
import math
import sys
import time
from typing import Any, Dict, Sequence, Tuple

from bt_acme.runtime import terminal
from experiments.demo import plan as plan_lib

# Seconds between two lines, by whether the output is a terminal.
_SECONDS = {True: 1.0, False: 10.0}


class ProgressLine:
  """Shows the progress of the runs and the remaining time."""

  def __init__(self, jobs: Sequence[plan_lib.Job]):
    """Initializes the line.

    Args:
      jobs: the runs to execute.
    """
    self._num_jobs = len(jobs)
    self._num_done = 0
    self._all_steps = sum(job.run.actor_steps for job in jobs)
    self._running: Dict[plan_lib.Job, Tuple[int, float]] = {}
    self._steps_done = 0  # Actor steps of finished runs.
    # Time and number of the first reported steps. Speed is measured from then
    # on, which excludes imports and compilation.
    self._start = math.nan
    self._first_steps = 0
    self._next_time = -math.inf
    self._live = sys.stdout.isatty()

  def update(self, job: plan_lib.Job, steps: int, recent: float) -> None:
    """Updates the progress of a run.

    Args:
      job: the run.
      steps: actor steps taken.
      recent: mean return of recent episodes; NaN if the run learns no task.
    """
    self._running[job] = steps, recent
    if steps and math.isnan(self._start):
      self._start, self._first_steps = time.monotonic(), self._steps()
    if time.monotonic() >= self._next_time:
      self._next_time = time.monotonic() + _SECONDS[self._live]
      text = self.text(time.monotonic() - self._start)
      if self._live:
        print(terminal.render_live(text), end='', flush=True)
      else:
        print(text, flush=True)

  def end(self, job: plan_lib.Job, text: str) -> None:
    """Records the end of a run and prints a permanent line."""
    self._running.pop(job, None)
    self._steps_done += job.run.actor_steps
    self._num_done += 1
    self.say(f'{plan_lib.label(job)}: {text}')

  def say(self, text: Any) -> None:
    """Prints a permanent line."""
    clear = terminal.render_live('') if self._live else ''
    print(f'{clear}{text}', flush=True)

  def text(self, seconds: float) -> str:
    """Returns the text of the line.

    Args:
      seconds: seconds since the first steps were reported.
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
    """Returns the actor steps of all runs so far."""
    return self._steps_done + sum(steps for steps, _ in self._running.values())
