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
import pathlib
import signal
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

from experiments.harness import claiming, jobs, records, runs
from experiments.harness import slots as slots_lib

# A worker that has found nothing to start looks again after so many polls.
_SCAN_POLLS = 10
# A process that does not save itself for as long after a signal is killed.
_GRACE_SECONDS = 300.0


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


class Worker:
  """Executes runs in the slots of this machine."""

  def __init__(
    self,
    folder: pathlib.Path,
    specs: Sequence[runs.RunSpec],
    slots: Sequence[slots_lib.Slot],
    *,
    hours: float = float('inf'),
    command: jobs.Command = jobs.command_of,
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
    self._is_mixed = len({slot.is_gpu for slot in slots}) > 1
    self._deadline = time.monotonic() + 3600 * hours
    self._command = command
    self._say = say
    self._poll_seconds = poll_seconds
    self._jobs: List[jobs.Job] = []
    self._done: Set[str] = set()
    self._there: Set[str] = set()  # What has been found whole stays so.
    self._scan_again = 0.0
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
    if not self._free or time.monotonic() < self._scan_again:
      return
    for spec in list(self._open):
      if self._is_settled(spec):
        self._open.remove(spec)
      elif not self._free:
        return
      elif self._is_ready(spec):
        self._take(spec)
    # What is left waits for other workers, or for the runs of this one.
    self._scan_again = time.monotonic() + _SCAN_POLLS * self._poll_seconds

  def _is_settled(self, spec: runs.RunSpec) -> bool:
    """Returns whether there is nothing more to do for a run, and notes why."""
    if any(job.spec is spec for job in self._jobs):
      return False
    if self._is_done(spec):
      self._done.add(spec.id)
      return True
    if self._has_failed(spec):
      self._failed[spec.id] = spec
      return True
    if any(self._is_hopeless(need.run) for need in spec.needs):
      self._blocked[spec.id] = spec
      return True
    return False

  def _is_done(self, spec: runs.RunSpec) -> bool:
    if spec.id not in self._there and records.is_done(self._folder, spec):
      self._there.add(spec.id)
    return spec.id in self._there

  def _has(self, need: runs.Need) -> bool:
    if not need.actor_steps:
      return self._is_done(need.run)
    if need.folder not in self._there and records.has(self._folder, need):
      self._there.add(need.folder)
    return need.folder in self._there

  def _has_failed(self, spec: runs.RunSpec) -> bool:
    record = records.read(self._folder, spec)
    return record.failures >= records.MOST_FAILURES

  def _is_hopeless(self, spec: runs.RunSpec) -> bool:
    """Returns whether a run has failed, or will never have what it needs."""
    if self._is_done(spec):
      return False
    return self._has_failed(spec) or any(
      self._is_hopeless(need.run) for need in spec.needs
    )

  def _is_ready(self, spec: runs.RunSpec) -> bool:
    return not any(job.spec is spec for job in self._jobs) and all(
      self._has(need) for need in spec.needs
    )

  def _take(self, spec: runs.RunSpec) -> None:
    """Starts a run, unless there is no slot, or another worker has it."""
    slot = next((s for s in self._free if self._fits(spec, s)), None)
    if slot is None:
      return
    claim = claiming.take(records.path_of(self._folder, spec, 'claim'))
    if claim is None:
      return
    # Another worker may have done it since this one looked.
    if self._is_done(spec) or self._has_failed(spec):
      claim.release()
      return
    self._free.remove(slot)
    self._jobs.append(
      jobs.start(self._folder, spec, slot, claim, self._command)
    )
    self._say(f'{spec.id}: begins on {slot.name}')

  def _fits(self, spec: runs.RunSpec, slot: slots_lib.Slot) -> bool:
    """Returns whether a run belongs in a slot.

    With slots of both kinds, runs learn on GPUs, and evaluations leave these
    free: they play on cores.
    """
    return not self._is_mixed or slot.is_gpu != spec.is_evaluation

  def _collect(self) -> None:
    """Looks which processes have ended, and how."""
    for job in list(self._jobs):
      code = job.process.poll()
      if code is not None:
        self._drop(job)
        self._note_end(job, code)
        job.claim.release()

  def _drop(self, job: jobs.Job) -> None:
    self._jobs.remove(job)
    self._free.append(job.slot)
    self._scan_again = 0.0

  def _note_end(self, job: jobs.Job, code: int) -> None:
    spec = job.spec
    news = jobs.end(self._folder, job, code, is_stopping=self._is_stopping)
    self._say(f'{spec.id}: {news}')
    if code == jobs.WRONG_FLAGS and not self._is_stopping:
      tail = records.tail_of_log(self._folder, spec)
      self._wrong_flags = '\n'.join([spec.command, *tail])
      self._stop('a script refuses its flags')

  def _touch(self) -> None:
    """Shows other workers that this one lives."""
    for job in list(self._jobs):
      if not job.touch():
        # This machine had slept, and another one goes on with the run.
        job.kill()
        job.process.wait()
        self._drop(job)
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
        job.kill()

  def _stop(self, why: str) -> None:
    """Has all runs save themselves and end."""
    if self._is_stopping:
      return
    self._stopped_at = time.monotonic()
    self._say(f'Stopping, because of this: {why}.')
    for job in self._jobs:
      job.stop()

  @contextlib.contextmanager
  def _signals(self) -> Iterator[None]:
    """Within the block, a signal stops the work; a second one kills it."""

    def note(signum: int, frame: Any) -> None:
      del frame
      if self._signum:
        for job in self._jobs:
          job.kill()
      self._signum = signum

    before = {signum: signal.signal(signum, note) for signum in jobs.STOPS}
    try:
      yield
    finally:
      for signum, handler in before.items():
        signal.signal(signum, handler)
