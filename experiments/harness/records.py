"""Records the outcome of each run.

For each run, the directory `queue` contains `ID.json` with the outcome of its
attempts, `ID.log` with the output of the last attempt, and `ID.lock/` with the
lock of the worker that executes the run.
"""

import datetime
import json
import pathlib
import signal
import socket
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from bt_acme import files
from experiments.harness import dataset, locks, processes

# The signals that make a run save its state and exit.
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# The exit code of a script that rejects its flags.
WRONG_FLAGS = 2
# A run that has failed this many times is not started again.
MOST_FAILURES = 3
_TAIL_LINES = 40
_QUEUE = 'queue'
WORKDIRS = 'runs'  # The directory of the workdirs, each named by its run's id.


class Runnable(Protocol):
  """The interface of a run for workers that share a directory."""

  @property
  def id(self) -> str:
    """The unique name of the run, and of its files in the queue."""

  @property
  def is_evaluation(self) -> bool:
    """Whether the run only evaluates, so that GPUs stay free for training."""

  @property
  def needed(self) -> Sequence['Runnable']:
    """The runs that this one depends on."""

  def is_done(self, folder: pathlib.Path) -> bool:
    """Returns whether all output of the run exists."""

  def is_ready(self, folder: pathlib.Path) -> bool:
    """Returns whether the output of the needed runs exists."""

  def call(self, folder: pathlib.Path) -> processes.Call:
    """Returns the function that a process calls to execute the run."""


def with_needed(
  todo: Iterable[Any], is_needed: Callable[[Any], bool] = lambda run: True
) -> list[Any]:
  """Returns runs without duplicates, each after those that it depends on.

  Args:
    todo: the runs.
    is_needed: returns whether to include a run that others depend on.
  """
  found: dict[str, Any] = {}

  def add(run: Any) -> None:
    for needed in run.needed:
      if is_needed(needed):
        add(needed)
    # The same run may be listed once with and once without its export.
    if run.id not in found or getattr(run, 'exports', False):
      found[run.id] = run

  for run in todo:
    add(run)
  return list(found.values())


class Attempts(NamedTuple):
  """The attempts at a run.

  Attributes:
    attempts: how many times the run was started.
    failures: how many attempts ended with an error.
    exit_code: exit code of the last attempt that ended; -1 if none did.
    seconds: duration of all attempts.
    host: the machine of the last attempt.
    started: start time of the first attempt, ISO 8601.
    ended: end time of the last attempt, ISO 8601.
    tail: the last output lines of a failed attempt.
  """

  attempts: int = 0
  failures: int = 0
  exit_code: int = -1
  seconds: float = 0.0
  host: str = ''
  started: str = ''
  ended: str = ''
  tail: tuple[str, ...] = ()


def path_of(folder: pathlib.Path, run: Runnable, kind: str) -> pathlib.Path:
  """Returns the path of a run's record (`json`), `log` or `lock`."""
  return folder / _QUEUE / f'{run.id}.{kind}'


def read(folder: pathlib.Path, run: Runnable) -> Attempts:
  """Reads the record of a run; returns an empty one if missing or damaged."""
  try:
    content = json.loads(path_of(folder, run, 'json').read_text())
    return Attempts(**{**content, 'tail': tuple(content['tail'])})
  except (OSError, ValueError, KeyError, TypeError):
    return Attempts()


def write(folder: pathlib.Path, run: Runnable, record: Attempts) -> None:
  """Writes the record of a run."""
  files.write_json(path_of(folder, run, 'json'), record._asdict())


def begin(folder: pathlib.Path, run: Runnable) -> None:
  """Records that this machine starts an attempt at a run."""
  record = read(folder, run)
  record = record._replace(
    attempts=record.attempts + 1,
    host=socket.gethostname(),
    started=record.started or _now(),
  )
  write(folder, run, record)


def end(
  folder: pathlib.Path,
  run: Runnable,
  code: int,
  seconds: float,
  *,
  is_stopping: bool,
) -> str:
  """Records the outcome of an attempt.

  Args:
    folder: the directory of all runs.
    run: the run.
    code: exit code of the attempt; negative after a signal.
    seconds: duration of the attempt.
    is_stopping: whether the worker has asked the run to stop.

  Returns:
    The outcome in words.
  """
  record = read(folder, run)
  record = record._replace(
    exit_code=code if code >= 0 else 128 - code,
    seconds=record.seconds + seconds,
    ended=_now(),
    tail=(),
  )
  if code == 0 and run.is_done(folder):
    news = f'done in {seconds:.0f} s'
  elif is_stopping or code > 128 or -code in STOPS:
    news = 'stopped; can be resumed'
  elif code == WRONG_FLAGS:
    news = 'invalid flags'
  else:
    tail = tail_of_log(folder, run)
    record = record._replace(failures=record.failures + 1, tail=tail)
    news = f'exit code {code}, failure {record.failures} of {MOST_FAILURES}'
  write(folder, run, record)
  return news


def tail_of_log(folder: pathlib.Path, run: Runnable) -> tuple[str, ...]:
  """Returns the last output lines of the last attempt."""
  try:
    text = path_of(folder, run, 'log').read_text(errors='replace')
  except OSError:
    return ()
  return tuple(text.splitlines()[-_TAIL_LINES:])


def has_failed(folder: pathlib.Path, run: Runnable) -> bool:
  """Returns whether a run has failed permanently."""
  return read(folder, run).failures >= MOST_FAILURES


def status_of(folder: pathlib.Path, run: Runnable) -> str:
  """Returns the status of a run, a value of `dataset.RunRow.status`."""
  if run.is_done(folder):
    return dataset.DONE
  if locks.is_held(path_of(folder, run, 'lock')):
    return dataset.RUNNING
  return dataset.FAILED if has_failed(folder, run) else dataset.WAITING


def failure(folder: pathlib.Path, run: Runnable) -> str:
  """Describes the failure of a run."""
  record = read(folder, run)
  last = record.tail[-1].strip() if record.tail else 'no output'
  return (
    f'{run.id} has failed {record.failures} times; exit code '
    f'{record.exit_code}: {last} Delete {path_of(folder, run, "json")} to '
    'try again.'
  )


def _now() -> str:
  now = datetime.datetime.now(datetime.timezone.utc)
  return now.isoformat(timespec='seconds')
