"""A task that is executed here: its process, its claim, and its record."""

import contextlib
import dataclasses
import datetime
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
from typing import Any, Callable, List, NamedTuple, Optional, Sequence

from experiments.harness import claiming, records, tasks
from experiments.harness import slots as slots_lib

ROOT = pathlib.Path(__file__).resolve().parents[2]  # Of the repository.
_STARTED = pathlib.Path(__file__).with_name('started.py')
_TOUCH_SECONDS = 30.0
# The exit code of a script that refuses its flags.
WRONG_FLAGS = 2
# How a worker of a cluster ends that has nothing left to do, although some
# tasks have failed: any error in Python ends with 1.
SOME_FAILED = 3
# The signals that stop a run, and upon which it saves itself.
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def stops_here() -> List[signal.Signals]:
  """Returns the signals that stop this process.

  What was started by nohup goes on when its terminal is closed.
  """
  hears = signal.getsignal(signal.SIGHUP) != signal.SIG_IGN
  return [s for s in STOPS if hears or s != signal.SIGHUP]


class Execution(NamedTuple):
  """What executes a task.

  Attributes:
    process: a process of its script, or one that executes others after it.
    poll: returns the exit code of the task, negative if a signal has ended the
      process; None while it goes on.
  """

  process: 'subprocess.Popen[bytes]'
  poll: Callable[[], Optional[int]]


# Has a process execute a task, in the folder of all tasks and in a slot.
Start = Callable[[pathlib.Path, Any, slots_lib.Slot], Execution]


@dataclasses.dataclass
class Job:
  """A task in a slot of this machine.

  Attributes:
    task: what is executed.
    slot: where.
    claim: this worker's right to execute it.
    execution: by which process.
    began: when it was started, by the monotonic clock.
    touched: when the claim was touched last.
  """

  task: tasks.Task
  slot: slots_lib.Slot
  claim: claiming.Claim
  execution: Execution
  began: float
  touched: float

  def stop(self) -> None:
    """Asks the task to save itself and to end."""
    # Its process alone, which tells those that it has started.
    self.execution.process.send_signal(signal.SIGINT)

  def kill(self) -> None:
    """Ends its process and those that it has started, at once."""
    with contextlib.suppress(ProcessLookupError):
      os.killpg(self.execution.process.pid, signal.SIGKILL)

  def touch(self) -> bool:
    """Shows now and then that its worker lives; False if the claim is lost."""
    now = time.monotonic()
    if now - self.touched < _TOUCH_SECONDS:
      return True
    self.touched = now
    return self.claim.touch()


def begin(
  folder: pathlib.Path,
  task: tasks.Task,
  slot: slots_lib.Slot,
  claim: claiming.Claim,
  start: Start,
) -> Job:
  """Starts a task, and writes down that it was started."""
  record = records.read(folder, task)
  records.write(
    folder,
    task,
    record._replace(
      attempts=record.attempts + 1,
      host=socket.gethostname(),
      started=record.started or _now(),
    ),
  )
  execution = start(folder, task, slot)
  claim.note(execution.process.pid)
  began = time.monotonic()
  return Job(task, slot, claim, execution, began, began)


def end(folder: pathlib.Path, job: Job, code: int, *, is_stopping: bool) -> str:
  """Writes down how a task has ended.

  Args:
    folder: the folder of all tasks.
    job: the task.
    code: its exit code; negative after a signal.
    is_stopping: whether the worker has asked it to stop.

  Returns:
    The news, in words.
  """
  task, seconds = job.task, time.monotonic() - job.began
  record = records.read(folder, task)
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
    tail = records.tail_of_log(folder, task)
    record = record._replace(failures=record.failures + 1, tail=tail)
    news = (
      f'exit code {code}, failure {record.failures} of {records.MOST_FAILURES}'
    )
  records.write(folder, task, record)
  return news


def start_process(
  command: Sequence[str],
  folder: pathlib.Path,
  slot: slots_lib.Slot,
  log: pathlib.Path,
  *,
  pass_fds: Sequence[int] = (),
) -> 'subprocess.Popen[bytes]':
  """Starts a process in a folder and a slot; it writes to a log."""
  cores = ','.join(map(str, sorted(slot.cores))) or 'all'
  path = [str(ROOT), os.environ.get('PYTHONPATH', '')]
  environment = {
    **os.environ,
    **slot.variables,
    'PYTHONPATH': os.pathsep.join(filter(None, path)),
  }
  with log.open('wb') as file:
    return subprocess.Popen(
      [sys.executable, str(_STARTED), cores, *command],
      cwd=folder,
      env=environment,
      stdin=subprocess.DEVNULL,
      stdout=file,
      stderr=subprocess.STDOUT,
      # Ctrl-C in a terminal reaches the worker alone, which passes it on.
      start_new_session=True,
      pass_fds=pass_fds,
    )


def _now() -> str:
  return datetime.datetime.now(datetime.timezone.utc).isoformat(
    timespec='seconds'
  )
