"""Works through runs: any number of workers, on any number of machines.

All workers share one folder. Each takes the first run that nobody works on and
whose needs are there, starts its script as a process of its own, and looks how
it ends:

  0        done, once the run has left all that it should
  128 + n  stopped by signal n, and saved: it is free to be resumed
  2        wrong flags: this worker stops, because no other run would do better
  others   it is started twice more; then it has failed
"""

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
from typing import (
  Any,
  Callable,
  Dict,
  Iterator,
  List,
  NamedTuple,
  Sequence,
  Set,
)

from experiments.harness import claiming, records, runs
from experiments.harness import slots as slots_lib

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_STARTED = pathlib.Path(__file__).with_name('started.py')
_TOUCH_SECONDS = 30.0
# A process that does not save itself for as long after a signal is killed.
_GRACE_SECONDS = 300.0
_WRONG_FLAGS = 2
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Command = Callable[[runs.RunSpec], Sequence[str]]


class Outcome(NamedTuple):
  """How a worker ended.

  Attributes:
    done: the number of its runs that are done.
    failed: the runs that have failed.
    blocked: the runs that need one that has failed.
    left: the number of runs that are left to do.
    wrong_flags: what a script said about its flags; empty if nothing.
    signum: the signal that stopped the worker; 0 if none did.
  """

  done: int
  failed: List[runs.RunSpec]
  blocked: List[runs.RunSpec]
  left: int
  wrong_flags: str = ''
  signum: int = 0


@dataclasses.dataclass
class _Job:
  """A run that is executed here."""

  spec: runs.RunSpec
  slot: slots_lib.Slot
  claim: claiming.Claim
  process: 'subprocess.Popen[bytes]'
  began: float
  touched: float


def command_of(spec: runs.RunSpec) -> List[str]:
  """Returns the command line that executes a run in the folder of all runs."""
  script = _ROOT / 'launch' / f'{spec.script}.py'
  return [sys.executable, str(script), *spec.flags]


class Worker:
  """Executes runs in the slots of this machine."""

  def __init__(
    self,
    folder: pathlib.Path,
    specs: Sequence[runs.RunSpec],
    slots: Sequence[slots_lib.Slot],
    *,
    hours: float = float('inf'),
    command: Command = command_of,
    say: Callable[[str], None] = print,
    poll_seconds: float = 1.0,
  ):
    """Prepares the work; `work` begins it.

    Args:
      folder: the folder of all runs.
      specs: the runs, in their order. What they need may be other workers'.
      slots: as many runs are executed at a time.
      hours: after so long all are stopped, and saved.
      command: makes the command line of a run.
      say: is called with a line of news.
      poll_seconds: how often processes and files are looked at.
    """
    self._folder = folder.absolute()
    self._open = list(specs)
    self._free = list(slots)
    self._deadline = time.monotonic() + 3600 * hours
    self._command = command
    self._say = say
    self._poll_seconds = poll_seconds
    self._jobs: List[_Job] = []
    self._done: Set[str] = set()
    self._failed: Dict[str, runs.RunSpec] = {}
    self._blocked: Dict[str, runs.RunSpec] = {}
    self._wrong_flags = ''
    self._stopped_at = float('inf')
    self._signum = 0

  def work(self) -> Outcome:
    """Works until all is done or has failed, or until it is stopped."""
    with self._signals():
      while True:
        self._collect()
        self._stop_if_due()
        if not self._is_stopping:
          self._fill()
        if not self._jobs and (self._is_stopping or not self._open):
          break
        self._touch()
        time.sleep(self._poll_seconds)
    return Outcome(
      len(self._done),
      list(self._failed.values()),
      list(self._blocked.values()),
      len(self._open),
      self._wrong_flags,
      self._signum,
    )

  @property
  def _is_stopping(self) -> bool:
    return self._stopped_at < float('inf')

  def _fill(self) -> None:
    """Starts what can be started."""
    for spec in list(self._open):
      if self._is_settled(spec):
        self._open.remove(spec)
      elif not self._free:
        return
      elif self._is_ready(spec):
        self._take(spec)

  def _is_settled(self, spec: runs.RunSpec) -> bool:
    """Returns whether there is nothing more to do for a run, and notes why."""
    if any(job.spec is spec for job in self._jobs):
      return False
    if records.is_done(self._folder, spec):
      self._done.add(spec.id)
      return True
    if self._has_failed(spec):
      self._failed[spec.id] = spec
      return True
    if any(self._is_hopeless(need.run) for need in spec.needs):
      self._blocked[spec.id] = spec
      return True
    return False

  def _has_failed(self, spec: runs.RunSpec) -> bool:
    record = records.read(self._folder, spec)
    return record.failures >= records.MOST_FAILURES

  def _is_hopeless(self, spec: runs.RunSpec) -> bool:
    """Returns whether a run has failed, or will never have what it needs."""
    if records.is_done(self._folder, spec):
      return False
    return self._has_failed(spec) or any(
      self._is_hopeless(need.run) for need in spec.needs
    )

  def _is_ready(self, spec: runs.RunSpec) -> bool:
    return not any(job.spec is spec for job in self._jobs) and all(
      records.has(self._folder, need) for need in spec.needs
    )

  def _take(self, spec: runs.RunSpec) -> None:
    """Starts a run, unless another worker has it."""
    claim = claiming.take(records.path_of(self._folder, spec, 'claim'))
    if claim is None:
      return
    # Another worker may have done it since this one looked.
    if records.is_done(self._folder, spec) or self._has_failed(spec):
      claim.release()
      return
    slot = self._free.pop(0)
    record = records.read(self._folder, spec)
    records.write(
      self._folder,
      spec,
      record._replace(
        attempts=record.attempts + 1,
        host=socket.gethostname(),
        started=record.started or _now(),
      ),
    )
    process = self._start(spec, slot)
    claim.note(process.pid)
    began = time.monotonic()
    self._jobs.append(_Job(spec, slot, claim, process, began, began))
    again = ', again' if record.attempts else ''
    self._say(f'{spec.id}: begins on {slot.name}{again}')

  def _start(
    self, spec: runs.RunSpec, slot: slots_lib.Slot
  ) -> 'subprocess.Popen[bytes]':
    cores = ','.join(map(str, sorted(slot.cores))) or 'all'
    path = [str(_ROOT), os.environ.get('PYTHONPATH', '')]
    environment = {
      **os.environ,
      **slot.variables,
      'PYTHONPATH': os.pathsep.join(filter(None, path)),
    }
    start = [sys.executable, str(_STARTED), cores, *self._command(spec)]
    with records.path_of(self._folder, spec, 'log').open('wb') as log:
      return subprocess.Popen(
        start,
        cwd=self._folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        # Ctrl-C in a terminal reaches this process alone, which passes it on.
        start_new_session=True,
      )

  def _collect(self) -> None:
    """Looks which processes have ended, and how."""
    for job in list(self._jobs):
      code = job.process.poll()
      if code is not None:
        self._jobs.remove(job)
        self._free.append(job.slot)
        self._note_end(job, code)
        job.claim.release()

  def _note_end(self, job: _Job, code: int) -> None:
    spec, seconds = job.spec, time.monotonic() - job.began
    record = records.read(self._folder, spec)
    record = record._replace(
      exit_code=code if code >= 0 else 128 - code,
      seconds=record.seconds + seconds,
      ended=_now(),
      tail=(),
    )
    tail = records.tail_of_log(self._folder, spec)
    if code == 0 and records.is_done(self._folder, spec):
      news = f'done in {seconds:.0f} s'
    elif self._is_stopping or code > 128 or -code in _STOPS:
      news = 'stopped, and free to be resumed'
    elif code == _WRONG_FLAGS:
      self._wrong_flags = f'{spec.command}\n' + '\n'.join(tail)
      self._stop('a script refuses its flags')
      news = 'its flags are wrong'
    else:
      record = record._replace(failures=record.failures + 1, tail=tail)
      news = f'exit code {code}, failure {record.failures} of '
      news += str(records.MOST_FAILURES)
    records.write(self._folder, spec, record)
    self._say(f'{spec.id}: {news}')

  def _touch(self) -> None:
    """Shows other workers that this one lives."""
    now = time.monotonic()
    for job in list(self._jobs):
      if now - job.touched < _TOUCH_SECONDS:
        continue
      job.touched = now
      if not job.claim.touch():
        # This machine had slept, and another one goes on with the run.
        _send(job, signal.SIGKILL)
        job.process.wait()
        self._jobs.remove(job)
        self._free.append(job.slot)
        self._say(f'{job.spec.id}: another worker has taken it over')

  def _stop_if_due(self) -> None:
    now = time.monotonic()
    if not self._is_stopping:
      if self._signum:
        self._stop(signal.Signals(self._signum).name)
      elif now > self._deadline:
        self._stop('the hours are over')
    elif now > self._stopped_at + _GRACE_SECONDS:
      for job in self._jobs:
        _send(job, signal.SIGKILL)

  def _stop(self, why: str) -> None:
    """Has all runs save themselves and end."""
    if self._is_stopping:
      return
    self._stopped_at = time.monotonic()
    self._say(f'Stopping, because of this: {why}.')
    for job in self._jobs:
      # Its process alone, which tells those that it has started.
      job.process.send_signal(signal.SIGINT)

  @contextlib.contextmanager
  def _signals(self) -> Iterator[None]:
    """Within the block, a signal stops the work; a second one kills it."""

    def note(signum: int, frame: Any) -> None:
      del frame
      if self._signum:
        for job in self._jobs:
          _send(job, signal.SIGKILL)
      self._signum = signum

    before = {signum: signal.signal(signum, note) for signum in _STOPS}
    try:
      yield
    finally:
      for signum, handler in before.items():
        signal.signal(signum, handler)


def _send(job: _Job, signum: int) -> None:
  """Sends a signal to a run's process and to those that it has started."""
  with contextlib.suppress(ProcessLookupError):
    os.killpg(job.process.pid, signum)


def _now() -> str:
  return datetime.datetime.now(datetime.timezone.utc).isoformat(
    timespec='seconds'
  )
