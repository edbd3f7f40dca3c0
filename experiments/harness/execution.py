"""Executes small runs and shows the progress of all runs together."""

import itertools
import pathlib
from collections.abc import Sequence
from typing import Any

import tqdm

from bt_acme.runtime import output, progress
from experiments.harness import records, slots, small_runs, workers


def complete(
  runs: Sequence[Any], folder: pathlib.Path, *, processes: int
) -> int:
  """Executes runs, and those that they depend on, and shows their progress.

  Args:
    runs: the runs in order of execution. Pre-training runs that are not done
      precede the runs that need them.
    folder: directory of results and behaviors, shared by all workers.
    processes: number of runs at a time, with one thread each.

  Returns:
    An exit code; failures have been printed.
  """
  runs = records.with_needed(runs, lambda run: not run.is_done(folder))
  bar = progress.Progress(max(1, sum(run.actor_steps for run in runs)))
  steps: dict[str, int] = {}
  numbers = itertools.count(1)

  def on_end(run: Any, news: str) -> None:
    if run.is_done(folder):
      outcome = _outcome(run.result(folder)['row'])
      _say(f'{next(numbers)} of {len(runs)}: {run}: {outcome}')
    else:
      _say(f'{run.id}: {news}')

  def on_news(run: Any, actor_steps: int) -> None:
    steps[run.id] = actor_steps
    bar.update({'actor_steps': sum(steps.values())})

  ended = workers.Worker(
    folder,
    runs,
    slots.unpinned(processes),
    say=_say,
    on_end=on_end,
    on_news=on_news,
  ).work()
  bar.close()
  for run in ended.failed:
    _say(records.failure(folder, run))
  if ended.exit_code:
    _say(f'{ended} Rerun the same command to continue.')
  return ended.exit_code


def _say(text: str) -> None:
  """Prints a permanent line, above the progress bar if there is one."""
  with tqdm.tqdm.external_write_mode():
    output.show(text)


def _outcome(row: small_runs.Row) -> str:
  """Describes the outcome of a finished run."""
  seconds = f'{row["seconds"]:.0f} s'
  if 'solved' not in row:
    return f'explored in {seconds}'
  cells = f'{row["cells"]:.1f} cells, ' if 'cells' in row else ''
  return f'solves {row["solved"]:.0%}, {cells}in {seconds}'
