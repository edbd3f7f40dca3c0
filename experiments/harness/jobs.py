"""A run that is executed here: its process, its claim, and its record."""

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
from typing import Callable, List, Sequence

from bt_acme.runtime import workdir_lock
from experiments.harness import claiming, records, runs
from experiments.harness import slots as slots_lib

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_STARTED = pathlib.Path(__file__).with_name('started.py')
_TOUCH_SECONDS = 30.0
# The exit code of a script that refuses its flags.
WRONG_FLAGS = 2
# The signals that stop a run, and upon which it saves itself.
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Command = Callable[[runs.RunSpec], Sequence[str]]


def command_of(spec: runs.RunSpec) -> List[str]:
  """Returns the command line that executes a run in the folder of all runs."""
  script = _ROOT / 'launch' / f'{spec.script}.py'
  return [sys.executable, str(script), *spec.flags]


@dataclasses.dataclass
class Job:
  """A run in a slot of this machine.

  Attributes:
    spec: the run.
    slot: where it runs.
    claim: this worker's right to execute it.
    process: of its script.
    began: when it was started, by the monotonic clock.
    touched: when the claim was touched last.
  """

  spec: runs.RunSpec
  slot: slots_lib.Slot
  claim: claiming.Claim
  process: 'subprocess.Popen[bytes]'
  began: float
  touched: float

  def stop(self) -> None:
    """Asks the run to save itself and to end."""
    # Its process alone, which tells those that it has started.
    self.process.send_signal(signal.SIGINT)

  def kill(self) -> None:
    """Ends its process and those that it has started, at once."""
    with contextlib.suppress(ProcessLookupError):
      os.killpg(self.process.pid, signal.SIGKILL)

  def touch(self) -> bool:
    """Shows now and then that its worker lives; False if the claim is lost."""
    now = time.monotonic()
    if now - self.touched < _TOUCH_SECONDS:
      return True
    self.touched = now
    return self.claim.touch()


def start(
  folder: pathlib.Path,
  spec: runs.RunSpec,
  slot: slots_lib.Slot,
  claim: claiming.Claim,
  command: Command,
) -> Job:
  """Starts a run's process, and writes down that it was started."""
  record = records.read(folder, spec)
  records.write(
    folder,
    spec,
    record._replace(
      attempts=record.attempts + 1,
      host=socket.gethostname(),
      started=record.started or _now(),
    ),
  )
  # Whoever had the run on another machine is gone, or the claim were not free.
  workdir_lock.clear(folder / spec.workdir)
  process = _start_process(folder, spec, slot, command(spec))
  claim.note(process.pid)
  began = time.monotonic()
  return Job(spec, slot, claim, process, began, began)


def end(folder: pathlib.Path, job: Job, code: int, *, is_stopping: bool) -> str:
  """Writes down how a run's process has ended.

  Args:
    folder: the folder of all runs.
    job: the run.
    code: the exit code of its process; negative after a signal.
    is_stopping: whether the worker has asked it to stop.

  Returns:
    The news, in words.
  """
  spec, seconds = job.spec, time.monotonic() - job.began
  record = records.read(folder, spec)
  record = record._replace(
    exit_code=code if code >= 0 else 128 - code,
    seconds=record.seconds + seconds,
    ended=_now(),
    tail=(),
  )
  if code == 0 and records.is_done(folder, spec):
    news = f'done in {seconds:.0f} s'
  elif is_stopping or code > 128 or -code in STOPS:
    news = 'stopped, and free to be resumed'
  elif code == WRONG_FLAGS:
    news = 'its flags are wrong'
  else:
    tail = records.tail_of_log(folder, spec)
    record = record._replace(failures=record.failures + 1, tail=tail)
    news = (
      f'exit code {code}, failure {record.failures} of {records.MOST_FAILURES}'
    )
  records.write(folder, spec, record)
  return news


def _start_process(
  folder: pathlib.Path,
  spec: runs.RunSpec,
  slot: slots_lib.Slot,
  command: Sequence[str],
) -> 'subprocess.Popen[bytes]':
  cores = ','.join(map(str, sorted(slot.cores))) or 'all'
  path = [str(_ROOT), os.environ.get('PYTHONPATH', '')]
  environment = {
    **os.environ,
    **slot.variables,
    'PYTHONPATH': os.pathsep.join(filter(None, path)),
  }
  with records.path_of(folder, spec, 'log').open('wb') as log:
    return subprocess.Popen(
      [sys.executable, str(_STARTED), cores, *command],
      cwd=folder,
      env=environment,
      stdin=subprocess.DEVNULL,
      stdout=log,
      stderr=subprocess.STDOUT,
      # Ctrl-C in a terminal reaches the worker alone, which passes it on.
      start_new_session=True,
    )


def _now() -> str:
  return datetime.datetime.now(datetime.timezone.utc).isoformat(
    timespec='seconds'
  )
