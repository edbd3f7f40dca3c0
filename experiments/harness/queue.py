"""Works through tasks: any number of workers, on any number of machines.

All workers share one folder. Each takes the first task that nobody works on and
whose needs are there, has a process execute it, and looks how it ends:

  0        done, once the task has left all that it should
  128 + n  stopped by signal n, and saved: it is free to be resumed
  2        wrong flags: this worker stops, because no other task would do better
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
  Optional,
  Sequence,
  Set,
)

from experiments.harness import claiming, jobs, records, tasks
from experiments.harness import slots as slots_lib

# A worker that has found nothing to start looks again after so many polls.
_SCAN_POLLS = 10
# A process that does not save itself for as long after a signal is killed.
_GRACE_SECONDS = 300.0


class Outcome(NamedTuple):
  """How a worker ended.

  Attributes:
    done: the number of its tasks that are done.
    failed: the tasks that have failed.
    blocked: the tasks that need one that has failed.
    left: the number of tasks that are left to do.
    wrong_flags: what a script said about its flags; empty if nothing.
    signum: the signal that stopped the worker; 0 if none did.
  """

  done: int
  failed: List[tasks.Task]
  blocked: List[tasks.Task]
  left: int
  wrong_flags: str = ''
  signum: int = 0

  def __str__(self) -> str:
    return (
      f'{self.done} runs are done, {self.left} are left, {len(self.failed)} '
      f'have failed, and {len(self.blocked)} need one of these.'
    )

  @property
  def exit_code(self) -> int:
    """The exit code of a command that was to do all tasks."""
    if self.wrong_flags:
      return jobs.WRONG_FLAGS
    return 128 + self.signum if self.signum else int(bool(self.failed))


class Worker:
  """Executes tasks in the slots of this machine."""

  def __init__(
    self,
    folder: pathlib.Path,
    todo: Sequence[tasks.Task],
    slots: Sequence[slots_lib.Slot],
    *,
    start: jobs.Start,
    hours: float = float('inf'),
    say: Callable[[str], None] = print,
    on_done: Optional[Callable[[Any], None]] = None,
    poll_seconds: float = 1.0,
  ):
    """Prepares the work; `work` begins it.

    Args:
      folder: the folder of all tasks.
      todo: the tasks, in their order. What they need may be other workers'.
      slots: as many tasks are executed at a time.
      start: has a process execute a task.
      hours: after so long all are stopped, and saved.
      say: is called with a line of news.
      on_done: takes each task that is done, which `say` is not told then.
      poll_seconds: how often processes and files are looked at.
    """
    self._folder = folder.absolute()
    self._open = list(todo)
    self._free = list(slots)
    self._is_mixed = len({slot.is_gpu for slot in slots}) > 1
    self._deadline = time.monotonic() + 3600 * hours
    self._start = start
    self._say = say
    self._on_done = on_done
    self._poll_seconds = poll_seconds
    self._jobs: List[jobs.Job] = []
    self._num_done = 0
    # What has been found done, or ready, stays so.
    self._done: Set[str] = set()
    self._ready: Set[str] = set()
    self._scan_again = 0.0
    self._failed: Dict[str, tasks.Task] = {}
    self._blocked: Dict[str, tasks.Task] = {}
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
      self._num_done,
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
    for task in list(self._open):
      if self._is_settled(task):
        self._open.remove(task)
      elif not self._free:
        return
      elif self._is_ready(task):
        self._take(task)
    # What is left waits for other workers, or for the tasks of this one.
    self._scan_again = time.monotonic() + _SCAN_POLLS * self._poll_seconds

  def _is_settled(self, task: tasks.Task) -> bool:
    """Returns whether there is nothing more to do for a task, and notes why."""
    if self._is_executed(task):
      return False
    if self._is_done(task):
      self._num_done += 1
      return True
    if self._has_failed(task):
      self._failed[task.id] = task
      return True
    if any(self._is_hopeless(needed) for needed in task.needed):
      self._blocked[task.id] = task
      return True
    return False

  def _is_executed(self, task: tasks.Task) -> bool:
    return any(job.task is task for job in self._jobs)

  def _is_done(self, task: tasks.Task) -> bool:
    if task.id not in self._done and task.is_done(self._folder):
      self._done.add(task.id)
    return task.id in self._done

  def _has_failed(self, task: tasks.Task) -> bool:
    record = records.read(self._folder, task)
    return record.failures >= records.MOST_FAILURES

  def _is_hopeless(self, task: tasks.Task) -> bool:
    """Returns whether a task has failed, or will never have what it needs."""
    if self._is_done(task):
      return False
    return self._has_failed(task) or any(
      self._is_hopeless(needed) for needed in task.needed
    )

  def _is_ready(self, task: tasks.Task) -> bool:
    if task.id not in self._ready and task.is_ready(self._folder):
      self._ready.add(task.id)
    return task.id in self._ready and not self._is_executed(task)

  def _take(self, task: tasks.Task) -> None:
    """Starts a task, unless there is no slot, or another worker has it."""
    slot = next((s for s in self._free if self._fits(task, s)), None)
    if slot is None:
      return
    claim = claiming.take(records.path_of(self._folder, task, 'claim'))
    if claim is None:
      return
    # Another worker may have done it since this one looked.
    if self._is_done(task) or self._has_failed(task):
      claim.release()
      return
    self._free.remove(slot)
    self._jobs.append(jobs.begin(self._folder, task, slot, claim, self._start))
    if slot.name:
      self._say(f'{task.id}: begins on {slot.name}')

  def _fits(self, task: tasks.Task, slot: slots_lib.Slot) -> bool:
    """Returns whether a task belongs in a slot.

    With slots of both kinds, runs learn on GPUs, and evaluations leave these
    free: they play on cores.
    """
    return not self._is_mixed or slot.is_gpu != task.is_evaluation

  def _collect(self) -> None:
    """Looks which tasks have ended, and how."""
    for job in list(self._jobs):
      code = job.execution.poll()
      if code is not None:
        self._drop(job)
        self._note_end(job, code)
        job.claim.release()

  def _drop(self, job: jobs.Job) -> None:
    self._jobs.remove(job)
    self._free.append(job.slot)
    self._scan_again = 0.0

  def _note_end(self, job: jobs.Job, code: int) -> None:
    task = job.task
    news = jobs.end(self._folder, job, code, is_stopping=self._is_stopping)
    if self._on_done and self._is_done(task):
      self._on_done(task)
    else:
      self._say(f'{task.id}: {news}')
    if code == jobs.WRONG_FLAGS and not self._is_stopping:
      tail = records.tail_of_log(self._folder, task)
      self._wrong_flags = '\n'.join([str(task), *tail])
      self._stop('a script refuses its flags')

  def _touch(self) -> None:
    """Shows other workers that this one lives."""
    for job in list(self._jobs):
      if not job.touch():
        # This machine had slept, and another one goes on with the task.
        job.kill()
        job.execution.process.wait()
        self._drop(job)
        self._say(f'{job.task.id}: another worker has taken it over')

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
    """Has all tasks save themselves and end."""
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

    before = {
      signum: signal.signal(signum, note) for signum in jobs.stops_here()
    }
    try:
      yield
    finally:
      for signum, handler in before.items():
        signal.signal(signum, handler)
