"""Executes small runs and shows the progress of all runs in one line."""

import datetime
import math
import pathlib
import sys
import time
from typing import Any, Sequence

from bt_acme.runtime import terminal
from experiments.harness import records, slots, small_runs, workers

# Seconds between two lines, by whether the output is a terminal.
_SECONDS = {True: 1.0, False: 10.0}


class ProgressLine:
  """Shows the progress of the runs and the remaining time."""

  def __init__(self, runs: Sequence[small_runs.SmallRun]):
    """Initializes the line.

    Args:
      runs: the runs to execute.
    """
    self._runs = runs
    self._num_done = 0
    self._steps_done = 0  # Actor steps of finished runs.
    self._running: dict[small_runs.SmallRun, tuple[int, float]] = {}
    # The time of the first steps. Speed is measured from then on, which
    # excludes imports and compilation.
    self._start = math.inf
    self._next_time = -math.inf

  def update(self, run: small_runs.SmallRun, steps: int, recent: float) -> None:
    """Updates the progress of a run.

    Args:
      run: the run.
      steps: actor steps taken.
      recent: mean return of recent episodes; NaN if the run learns no task.
    """
    self._running[run] = steps, recent
    now, live = time.monotonic(), sys.stdout.isatty()
    if steps:
      self._start = min(self._start, now)
    if now >= self._next_time:
      self._next_time = now + _SECONDS[live]
      text = self.text(now - self._start)
      print(
        terminal.render_live(text) if live else text,
        end='' if live else '\n',
        flush=True,
      )

  def end(self, run: small_runs.SmallRun, text: str) -> None:
    """Records the end of a run and prints a permanent line."""
    self._running.pop(run, None)
    self._steps_done += run.actor_steps
    self._num_done += 1
    self.say(f'{self._num_done} of {len(self._runs)}: {run}: {text}')

  def say(self, text: Any) -> None:
    """Prints a permanent line."""
    clear = terminal.render_live('') if sys.stdout.isatty() else ''
    print(f'{clear}{text}', flush=True)

  def text(self, seconds: float) -> str:
    """Returns the text of the line.

    Args:
      seconds: seconds since the first steps were reported.
    """
    steps = self._steps_done + sum(taken for taken, _ in self._running.values())
    parts = [f'{self._num_done} of {len(self._runs)} runs done']
    if steps and seconds > 0:
      left = sum(run.actor_steps for run in self._runs) - steps
      time_left = datetime.timedelta(seconds=round(left * seconds / steps))
      parts[0] += f', {time_left} left'
    for run, (taken, recent) in self._running.items():
      share = f' {taken / run.actor_steps:.0%}' if taken else ''
      is_known = taken and not math.isnan(recent)
      parts.append(
        f'{run}{share}' + (f', return {recent:.2f}' if is_known else '')
      )
    return ' | '.join(parts)


def complete(
  runs: Sequence[Any], folder: pathlib.Path, *, processes: int
) -> int:
  """Executes runs and shows their progress.

  Args:
    runs: the runs in order of execution.
    folder: directory of results and behaviors, shared by all workers.
    processes: number of runs at a time, with one thread each.

  Returns:
    An exit code; failures have been printed.
  """
  line = ProgressLine(runs)

  def on_end(run: Any, news: str, is_done: bool) -> None:
    if is_done:
      line.end(run, _outcome(run.result(folder)['row']))
    else:
      line.say(f'{run.id}: {news}')

  ended = workers.Worker(
    folder,
    runs,
    slots.unpinned(processes),
    say=line.say,
    on_end=on_end,
    on_news=lambda run, news: line.update(run, *news),
  ).work()
  for run in ended.failed:
    line.say(records.failure(folder, run))
  if ended.exit_code:
    line.say(f'{ended} Rerun the same command to continue.')
  return ended.exit_code


def _outcome(row: small_runs.Row) -> str:
  """Describes the outcome of a finished run."""
  seconds = f'{row["seconds"]:.0f} s'
  if 'solved' not in row:
    return f'explored in {seconds}'
  return f'solves {row["solved"]:.0%}, {row["cells"]:.1f} cells, in {seconds}'
