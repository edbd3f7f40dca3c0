"""The state of the runs of the pool, in one line."""

import datetime
import math
import sys
import time
from typing import Dict, Sequence, Tuple

from bt_acme.runtime import progress as progress_lib
from experiments.demo import plan as plan_lib

_SECONDS = {True: 1.0, False: 10.0}  # Between two lines, on a terminal or not.


class Line:
  """Says how far the runs are, and how long they are going to take."""

  def __init__(self, jobs: Sequence[plan_lib.Job], task_steps: int):
    """Begins with nothing done.

    Args:
      jobs: all runs that are to be done.
      task_steps: actor steps of each run that learns.
    """
    self._task_steps = task_steps
    self._num_jobs = len(jobs)
    self._num_done = 0
    self._num_training = sum(job.kind != plan_lib.POLICIES for job in jobs)
    self._running: Dict[plan_lib.Job, Tuple[int, float]] = {}
    self._steps_done = 0  # Those of runs that have ended.
    self._start = math.nan  # When the first steps were reported.
    self._next_time = -math.inf
    self._live = sys.stdout.isatty()

  def update(self, job: plan_lib.Job, steps: int, solved: float) -> None:
    """Takes in how far a run is.

    Args:
      job: the run.
      steps: actor steps taken.
      solved: share of the recent episodes that were solved.
    """
    if math.isnan(self._start):
      self._start = time.monotonic()
    self._running[job] = steps, solved
    if time.monotonic() >= self._next_time:
      self._next_time = time.monotonic() + _SECONDS[self._live]
      self._write(self.text(time.monotonic() - self._start))

  def end(self, job: plan_lib.Job, text: str) -> None:
    """Takes in the end of a run, and leaves a line about it."""
    if self._running.pop(job, None):
      self._steps_done += self._task_steps
    self._num_done += 1
    clear = progress_lib.render_live('') if self._live else ''
    print(f'{clear}{job.label}: {text}', flush=True)

  def text(self, seconds: float) -> str:
    """Composes the line.

    Args:
      seconds: since the first steps were reported.
    """
    steps = self._steps_done + sum(s for s, _ in self._running.values())
    parts = [f'{self._num_done} of {self._num_jobs} runs done']
    if steps and seconds > 0:
      steps_left = self._num_training * self._task_steps - steps
      left = datetime.timedelta(seconds=round(steps_left * seconds / steps))
      parts[0] += f', {left} left'
    for job, (job_steps, solved) in self._running.items():
      share = job_steps / self._task_steps
      parts.append(f'{job.label} {share:.0%}, solves {solved:.0%}')
    return ' | '.join(parts)

  def _write(self, text: str) -> None:
    print(
      progress_lib.render_live(text) if self._live else text,
      end='' if self._live else '\n',
      flush=True,
    )
