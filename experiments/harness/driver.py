"""Executes runs with any number of workers on any number of machines.

All workers share one directory. Each worker takes the first run that no other
worker holds and whose dependencies are done, executes it in the process of a
slot, and then acts on its exit code:

  0        the run is done, provided that all its output files exist
  128 + n  stopped by signal n and saved: any worker can resume it
  2        invalid flags: the worker stops, because other runs would fail too
  other    the run is started again, up to twice; then it has failed
"""

import collections
import contextlib
import pathlib
import signal
import time
from concurrent import futures
from typing import Any, Callable, NamedTuple, Sequence

from bt_acme.runtime import interrupts, workdir_lock
from experiments.harness import locks, pool, records
from experiments.harness import slots as slots_lib

# Number of polls between two searches for runs that can be started.
_SCAN_POLLS = 10
# Shutdown timeout: a run that is still saving after this long is killed.
_SHUTDOWN_SECONDS = 300.0
# Final states of a run.
_DONE, _FAILED, _BLOCKED = 'done', 'failed', 'blocked'
_POLL_SECONDS = 0.2  # Some small runs take only seconds.


class Outcome(NamedTuple):
  """The outcome of a worker.

  Attributes:
    done: the number of runs that are done.
    failed: the runs that have failed.
    blocked: the runs that depend on a failed run.
    left: the number of remaining runs.
    wrong_flags: the error of a script about its flags; empty if there was none.
    signum: the signal that stopped the worker; 0 if none did.
  """

  done: int
  failed: list[records.Runnable]
  blocked: list[records.Runnable]
  left: int
  wrong_flags: str = ''
  signum: int = 0

  def __str__(self) -> str:
    return (
      f'Runs: {self.done} done, {self.left} left, {len(self.failed)} failed, '
      f'{len(self.blocked)} blocked by a failed run.'
    )

  @property
  def exit_code(self) -> int:
    """The exit code of a command that executes all runs."""
    if self.wrong_flags:
      return records.WRONG_FLAGS
    failed = bool(self.failed or self.blocked)
    return 128 + self.signum if self.signum else int(failed)


class _Job(NamedTuple):
  """A run that is being executed in a slot."""

  task: records.Runnable
  process: pool.Process
  lock: locks.Lock
  began: float


class Worker:
  """Executes runs in the slots of this machine."""

  def __init__(
    self,
    folder: pathlib.Path,
    todo: Sequence[records.Runnable],
    processes: Sequence[pool.Process],
    *,
    hours: float = float('inf'),
    say: Callable[[str], None] = print,
    on_end: Callable[[Any, str], None] | None = None,
    on_news: Callable[[Any, Any], None] = lambda task, news: None,
    poll_seconds: float = 1.0,
  ):
    """Initializes a worker; `work` starts it.

    Args:
      folder: the directory of all runs.
      todo: the runs in order of execution. Other workers may execute the runs
        that they depend on.
      processes: the processes of the slots; each executes one run at a time.
      hours: time limit, after which all runs are saved and stopped.
      say: called with each line of status.
      on_end: called with each run that has ended and its outcome in words; by
        default, the outcome is passed to `say`.
      on_news: called with a run and each value that the run reports.
      poll_seconds: seconds between two checks of processes and files.
    """
    self._folder = folder.absolute()
    self._open = list(todo)
    self._free = list(processes)
    self._is_mixed = len({process.slot.is_gpu for process in processes}) > 1
    self._deadline = time.monotonic() + 3600 * hours
    self._say = say
    self._on_end = on_end or (lambda task, news: say(f'{task.id}: {news}'))
    self._on_news = on_news
    self._poll_seconds = poll_seconds
    self._jobs: dict['futures.Future[int]', _Job] = {}
    self._settled: dict[str, list[records.Runnable]] = collections.defaultdict(
      list
    )
    self._done: set[str] = set()  # Cache: a run that is done stays done.
    self._scan_again = 0.0
    self._wrong_flags = ''
    self._signum = 0
    self._stopped_at = float('inf')

  def work(self) -> Outcome:
    """Executes runs until all are done or failed, or until stopped."""
    with (
      interrupts.handled(interrupts.stop_signals(), self._note_signal),
      contextlib.ExitStack() as stack,
    ):
      for process in self._free:
        stack.callback(process.close)
      stack.callback(self._ask_to_end)  # Called before the others.
      self._fill()
      while self._jobs or (self._open and not self._is_stopping):
        self._wait()
        self._collect()
        self._stop_if_needed()
        self._touch()
        self._fill()
    for task in list(self._open):
      self._settle(task)
    return Outcome(
      len(self._settled[_DONE]),
      self._settled[_FAILED],
      self._settled[_BLOCKED],
      len(self._open),
      self._wrong_flags,
      self._signum,
    )

  @property
  def _is_stopping(self) -> bool:
    return self._stopped_at < float('inf')

  def _fill(self) -> None:
    """Starts runs in free slots."""
    if self._is_stopping or time.monotonic() < self._scan_again:
      return
    executed = {job.task.id for job in self._jobs.values()}
    for task in list(self._open):
      if not self._free:
        return
      if task.id in executed:
        continue
      if not self._settle(task) and task.is_ready(self._folder):
        self._take(task)
    # The remaining runs wait for other workers or for runs of this worker.
    self._scan_again = time.monotonic() + _SCAN_POLLS * self._poll_seconds

  def _settle(self, task: records.Runnable) -> bool:
    """Records whether a run is done, failed or blocked; False if it is open."""
    state = self._state(task)
    if state:
      self._settled[state].append(task)
      self._open.remove(task)
    return bool(state)

  def _state(self, task: records.Runnable) -> str:
    """Returns the final state of a run; empty if the run is not settled."""
    if task.id in self._done or task.is_done(self._folder):
      self._done.add(task.id)
      return _DONE
    if records.has_failed(self._folder, task):
      return _FAILED
    needed = {self._state(needed) for needed in task.needed}
    return _BLOCKED if needed & {_FAILED, _BLOCKED} else ''

  def _take(self, task: records.Runnable) -> None:
    """Starts a run, unless no slot is free or another worker holds the run."""
    process = next((p for p in self._free if self._fits(task, p)), None)
    lock = self._lock(task) if process else None
    if process is None or lock is None:
      return
    self._free.remove(process)
    records.begin(self._folder, task)
    log = records.path_of(self._folder, task, 'log')
    future = process.start(task.call(self._folder), log)
    self._jobs[future] = _Job(task, process, lock, time.monotonic())
    if process.slot.name:
      self._say(f'{task.id}: starting on {process.slot.name}')

  def _fits(self, task: records.Runnable, process: pool.Process) -> bool:
    """Returns whether a run may use a slot.

    With slots of both kinds, training runs use GPUs and evaluations use cores.
    """
    return not self._is_mixed or process.slot.is_gpu != task.is_evaluation

  def _lock(self, task: records.Runnable) -> locks.Lock | None:
    """Locks a run for execution; returns None if it is not available."""
    try:
      lock = locks.Lock(records.path_of(self._folder, task, 'lock'))
    except BlockingIOError:
      return None
    # No other host executes the run, because its lock was free. On this host,
    # the script of a killed worker may still be saving its state.
    workdir = self._folder / records.WORKDIRS / task.id
    workdir_lock.clear(workdir)
    # Another worker may have finished the run in the meantime.
    if locks.is_held(workdir) or self._state(task):
      lock.release()
      return None
    return lock

  def _wait(self) -> None:
    """Waits until a run ends, for at most `poll_seconds`."""
    if self._jobs:
      futures.wait(self._jobs, self._poll_seconds, futures.FIRST_COMPLETED)
    else:
      time.sleep(self._poll_seconds)

  def _collect(self) -> None:
    """Collects the reports and exit codes of runs."""
    for future, job in list(self._jobs.items()):
      has_ended = future.done()  # Checked first, so that no report is missed.
      for news in job.process.news():
        self._on_news(job.task, news)
      if has_ended:
        self._note_end(job, job.process.exit_code(future))
        self._drop(future)

  def _drop(self, future: 'futures.Future[int]') -> None:
    job = self._jobs.pop(future)
    job.lock.release()
    self._free.append(job.process)
    self._scan_again = 0.0

  def _note_end(self, job: _Job, code: int) -> None:
    seconds = time.monotonic() - job.began
    news = records.end(
      self._folder, job.task, code, seconds, is_stopping=self._is_stopping
    )
    self._on_end(job.task, news)
    if code == records.WRONG_FLAGS and not self._is_stopping:
      tail = records.tail_of_log(self._folder, job.task)
      self._wrong_flags = '\n'.join([str(job.task), *tail])
      self._stop('a script rejected its flags')

  def _touch(self) -> None:
    """Refreshes the locks, so that other workers see that this one is alive."""
    for future, job in list(self._jobs.items()):
      if not job.lock.touch():
        # This machine was suspended, and another one has resumed the run.
        job.process.kill()
        job.process.close()
        self._drop(future)
        self._say(f'{job.task.id}: another worker has taken it over')

  def _stop_if_needed(self) -> None:
    now = time.monotonic()
    if self._signum:
      self._stop(signal.Signals(self._signum).name)
    elif now > self._deadline:
      self._stop('the time limit of --hours was reached')
    if now > self._stopped_at + _SHUTDOWN_SECONDS:
      self._kill()

  def _stop(self, why: str) -> None:
    """Asks all runs to save their state and exit."""
    if not self._is_stopping:
      self._stopped_at = time.monotonic()
      self._say(f'Stopping: {why}.')
      self._ask_to_end()

  def _ask_to_end(self) -> None:
    for job in self._jobs.values():
      job.process.stop()

  def _kill(self) -> None:
    for job in self._jobs.values():
      job.process.kill()

  def _note_signal(self, signum: int) -> None:
    """Stops the runs at the first signal and kills them at the second."""
    if self._signum:
      self._kill()
    self._signum = signum


def complete(
  folder: pathlib.Path,
  todo: Sequence[records.Runnable],
  *,
  processes: int,
  say: Callable[[str], None],
  on_done: Callable[[Any], None],
  on_news: Callable[[Any, Any], None] = lambda task, news: None,
) -> int:
  """Executes the remaining runs; other workers may share the directory.

  Args:
    folder: the directory of all runs.
    todo: the runs in order of execution.
    processes: number of runs at a time, with one thread each.
    say: called with each line of status.
    on_done: called instead of `say` with each run that is done.
    on_news: called with a run and each value that the run reports.

  Returns:
    An exit code; failures have been passed to `say`.
  """

  def on_end(task: records.Runnable, news: str) -> None:
    if task.is_done(folder):
      on_done(task)
    else:
      say(f'{task.id}: {news}')

  ended = Worker(
    folder,
    todo,
    [pool.Process(slot) for slot in slots_lib.unpinned(processes)],
    say=say,
    on_end=on_end,
    on_news=on_news,
    poll_seconds=_POLL_SECONDS,
  ).work()
  for task in ended.failed:
    say(records.failure(folder, task))
  if ended.exit_code:
    say(f'{ended} Rerun the same command to continue.')
  return ended.exit_code
