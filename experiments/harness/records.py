"""What became of each run, and who executes it.

The folder `queue` has, for each run, `ID.json` with the outcome of its
attempts, `ID.log` with what the last attempt printed, and `ID.lock/` with the
lock of the worker that executes it.
"""

import datetime
import json
import pathlib
import signal
import socket
from typing import NamedTuple, Protocol, Sequence, Tuple

from bt_acme import files
from experiments.harness import dataset, locks, pool

# The signals that stop a run, and upon which it saves itself.
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# The exit code of a script that refuses its flags.
WRONG_FLAGS = 2
# A run that fails this often is not started again.
MOST_FAILURES = 3
_TAIL_LINES = 40
_QUEUE = 'queue'
WORKDIRS = 'runs'  # The folder of the workdirs, each by the id of its run.


class Runnable(Protocol):
  """A run, as workers see it: something to do once in the folder they share."""

  @property
  def id(self) -> str:
    """Names its files in the queue. Tasks of the same id are the same."""

  @property
  def is_evaluation(self) -> bool:
    """Whether it learns nothing, and leaves GPUs to those that do."""

  @property
  def needed(self) -> Sequence['Runnable']:
    """The tasks that must not fail if this one is to be ready."""

  def is_done(self, folder: pathlib.Path) -> bool:
    """Returns whether all that it should leave is there."""

  def is_ready(self, folder: pathlib.Path) -> bool:
    """Returns whether what it needs is there."""

  def call(self, folder: pathlib.Path) -> pool.Call:
    """Returns what a process executes."""


class Attempts(NamedTuple):
  """The attempts at a run.

  Attributes:
    attempts: how often it was started.
    failures: how often it ended by an error.
    exit_code: of the last attempt that ended; -1 if none did.
    seconds: of all attempts.
    host: the machine of the last one.
    started: the time of the first one, ISO 8601.
    ended: the time of the last one's end, ISO 8601.
    tail: the last lines that a failed attempt printed.
  """

  attempts: int = 0
  failures: int = 0
  exit_code: int = -1
  seconds: float = 0.0
  host: str = ''
  started: str = ''
  ended: str = ''
  tail: Tuple[str, ...] = ()


def path_of(folder: pathlib.Path, task: Runnable, kind: str) -> pathlib.Path:
  """Returns the path of a run's `json`, `log` or `lock`."""
  return folder / _QUEUE / f'{task.id}.{kind}'


def read(folder: pathlib.Path, task: Runnable) -> Attempts:
  """Reads a record; one that is not there, or is damaged, is empty."""
  try:
    content = json.loads(path_of(folder, task, 'json').read_text())
    return Attempts(**{**content, 'tail': tuple(content['tail'])})
  except (OSError, ValueError, KeyError, TypeError):
    return Attempts()


def write(folder: pathlib.Path, task: Runnable, record: Attempts) -> None:
  """Writes a record."""
  text = json.dumps(record._asdict(), indent=2) + '\n'
  files.write_text(path_of(folder, task, 'json'), text)


def begin(folder: pathlib.Path, task: Runnable) -> None:
  """Records that a run is started here."""
  record = read(folder, task)
  record = record._replace(
    attempts=record.attempts + 1,
    host=socket.gethostname(),
    started=record.started or _now(),
  )
  write(folder, task, record)


def end(
  folder: pathlib.Path,
  task: Runnable,
  code: int,
  seconds: float,
  *,
  is_stopping: bool,
) -> str:
  """Records how an attempt has ended.

  Args:
    folder: the folder of all runs.
    task: the run.
    code: its exit code; negative after a signal.
    seconds: the time that it took.
    is_stopping: whether the worker has asked it to stop.

  Returns:
    The news, in words.
  """
  record = read(folder, task)
  record = record._replace(
    exit_code=code if code >= 0 else 128 - code,
    seconds=record.seconds + seconds,
    ended=_now(),
    tail=(),
  )
  if code == 0 and task.is_done(folder):
    news = f'done in {seconds:.0f} s'
  elif is_stopping or code > 128 or -code in STOPS:
    news = 'stopped, and free to be resumed'
  elif code == WRONG_FLAGS:
    news = 'its flags are wrong'
  else:
    tail = tail_of_log(folder, task)
    record = record._replace(failures=record.failures + 1, tail=tail)
    news = f'exit code {code}, failure {record.failures} of {MOST_FAILURES}'
  write(folder, task, record)
  return news


def tail_of_log(folder: pathlib.Path, task: Runnable) -> Tuple[str, ...]:
  """Returns the last lines that the last attempt printed."""
  try:
    text = path_of(folder, task, 'log').read_text(errors='replace')
  except OSError:
    return ()
  return tuple(text.splitlines()[-_TAIL_LINES:])


def has_failed(folder: pathlib.Path, task: Runnable) -> bool:
  """Returns whether a run has failed for good."""
  return read(folder, task).failures >= MOST_FAILURES


def status_of(folder: pathlib.Path, task: Runnable) -> str:
  """Returns a run's status, one of those of `dataset.Run`."""
  if task.is_done(folder):
    return dataset.DONE
  if locks.is_held(path_of(folder, task, 'lock')):
    return dataset.RUNNING
  return dataset.FAILED if has_failed(folder, task) else dataset.WAITING


def failure(folder: pathlib.Path, task: Runnable) -> str:
  """Returns a sentence about a task that has failed."""
  record = read(folder, task)
  last = record.tail[-1].strip() if record.tail else 'it printed nothing'
  return (
    f'{task.id} has failed {record.failures} times, with exit code '
    f'{record.exit_code}: {last} Remove {path_of(folder, task, "json")} to '
    'try again.'
  )


def _now() -> str:
  now = datetime.datetime.now(datetime.timezone.utc)
  return now.isoformat(timespec='seconds')
