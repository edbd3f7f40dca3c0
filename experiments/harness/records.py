"""What became of each run: kept beside its claim, as JSON.

The queue's folder has, for each run, `ID.claim` while a worker has it,
`ID.json` with what came of the attempts, and `ID.log` with what the last
attempt printed.
"""

import json
import pathlib
from typing import NamedTuple, Tuple

from bt_acme import files
from experiments.harness import claiming, dataset, tasks

# A run that fails as often is not started again.
MOST_FAILURES = 3
_TAIL_LINES = 40


class Record(NamedTuple):
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


def path_of(folder: pathlib.Path, task: tasks.Task, kind: str) -> pathlib.Path:
  """Returns the file of a run: its `claim`, its `json`, or its `log`."""
  return folder / 'queue' / f'{task.id}.{kind}'


def read(folder: pathlib.Path, task: tasks.Task) -> Record:
  """Reads a record; one that is not there, or is damaged, is empty."""
  try:
    content = json.loads(path_of(folder, task, 'json').read_text())
    return Record(**{**content, 'tail': tuple(content['tail'])})
  except (OSError, ValueError, KeyError, TypeError):
    return Record()


def write(folder: pathlib.Path, task: tasks.Task, record: Record) -> None:
  """Writes a record."""
  text = json.dumps(record._asdict(), indent=2) + '\n'
  files.write_text(path_of(folder, task, 'json'), text)


def tail_of_log(folder: pathlib.Path, task: tasks.Task) -> Tuple[str, ...]:
  """Returns the last lines that the last attempt printed."""
  try:
    text = path_of(folder, task, 'log').read_text(errors='replace')
  except OSError:
    return ()
  return tuple(text.splitlines()[-_TAIL_LINES:])


def status_of(folder: pathlib.Path, task: tasks.Task) -> str:
  """Returns a run's status, one of those of `dataset.Run`."""
  if task.is_done(folder):
    return dataset.DONE
  if claiming.is_held(path_of(folder, task, 'claim')):
    return dataset.RUNNING
  if read(folder, task).failures >= MOST_FAILURES:
    return dataset.FAILED
  return dataset.WAITING


def failure(folder: pathlib.Path, task: tasks.Task) -> str:
  """Returns a sentence about a task that has failed."""
  record = read(folder, task)
  last = record.tail[-1].strip() if record.tail else 'it printed nothing'
  return (
    f'{task.id} has failed {record.failures} times, with exit code '
    f'{record.exit_code}: {last} Remove {path_of(folder, task, "json")} to '
    'try again.'
  )
