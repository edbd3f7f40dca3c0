"""Executes runs with any number of workers on any number of machines.

All workers share one directory. In each free slot of its machine, a worker
starts the first run that no other worker holds and whose dependencies are done.
The process of the slot executes it. The worker then acts on its exit code:

  0        the run is done, provided that all its output files exist
  128 + n  stopped by signal n and saved: any worker can resume it
  2        invalid flags: the worker stops, because other runs would fail too
  other    the run is started again, up to twice; then it has failed
"""

import collections
import contextlib
import functools
import pathlib
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import connection
from typing import Any, NamedTuple

from bt_acme import files
from bt_acme.runtime import interrupts, output, workdir_lock
from experiments.harness import locks, processes, records

# Seconds between two checks of runs, signals and the time limit.
_POLL_SECONDS = 0.2
# Seconds between two searches for runs that other workers have enabled or left.
_SCAN_SECONDS = 10.0
# Shutdown timeout: a run that is still saving after this long is killed.
_SHUTDOWN_SECONDS = 300.0
_TIME_LIMIT = 75  # The exit code if the time limit has left runs.
# Final states of a run.
_DONE, _FAILED, _BLOCKED = 'done', 'failed', 'blocked'
_ENDED = 'ended'  # Stands for the end of an execution.


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
    if self.signum:
      return 128 + self.signum
    if self.failed or self.blocked:
      return 1
    return _TIME_LIMIT if self.left else 0


class Worker:
  """Executes runs in the slots of this machine."""

  def __init__(
    self,
    folder: pathlib.Path,
    todo: Sequence[records.Runnable],
    slots: Sequence[processes.Slot],
    *,
    hours: float = float('inf'),
    say: Callable[[str], None] = output.show,
    on_end: Callable[[Any, str], None] | None = None,
    on_news: Callable[[Any, Any], None] = lambda run, news: None,
  ):
    """Initializes a worker; `work` starts it.

    Args:
      folder: the directory of all runs.
      todo: the runs in order of execution. Other workers may execute the runs
        that they depend on.
      slots: the slots; each executes one run at a time.
      hours: time limit, after which all runs are saved and stopped.
      say: called with each line of status.
      on_end: called with each run that has ended and its outcome in words; by
        default, the outcome is passed to `say`.
      on_news: called with a run and each value that the run reports.
    """
    self._folder = folder.absolute()
    self._todo = todo
    self._left = list(todo)  # The runs that are not known to be settled.
    # The execution that occupies each process, if any.
    self._jobs: dict[processes.Process, Iterator[None] | None] = {
      processes.Process(slot): None for slot in slots
    }
    self._is_mixed = len({slot.is_gpu for slot in slots}) > 1
    self._deadline = time.monotonic() + 3600 * hours
    self._say = say
    self._on_end = on_end or (lambda run, news: say(f'{run.id}: {news}'))
    self._on_news = on_news
    self._done: set[str] = set()  # Cache: a run that is done stays done.
    self._next_scan = 0.0
    self._stopped_at = float('inf')
    self._wrong_flags = ''
    self._signum = 0

  def work(self) -> Outcome:
    """Executes runs until all are done or failed, or until stopped.

    Raises:
      ValueError: if the disk is full.
    """
    with interrupts.handled(interrupts.stop_signals(), self._note_signal):
      try:
        while self._start_runs():
          self._watch_runs()
          self._stop_if_needed()
      except OSError as error:
        if not files.is_disk_full(error):
          raise
        raise ValueError(f'{error}. Free disk space, then rerun.') from error
      finally:
        for process in self._jobs:  # All save at the same time.
          process.stop()
        for process in self._jobs:
          process.close()
    states = collections.defaultdict[str, list[records.Runnable]](list)
    for run in self._todo:
      states[self._state(run)].append(run)
    return Outcome(
      *(len(states[_DONE]), states[_FAILED], states[_BLOCKED]),
      *(len(states['']), self._wrong_flags, self._signum),
    )

  @property
  def _is_stopping(self) -> bool:
    return self._stopped_at < float('inf')

  def _start_runs(self) -> bool:
    """Starts runs in free slots; returns False once nothing runs or is left."""
    if not self._is_stopping and time.monotonic() >= self._next_scan:
      self._next_scan = time.monotonic() + _SCAN_SECONDS
      for process, job in self._jobs.items():
        if job is None:
          self._jobs[process] = self._take_next(process)
    return any(self._jobs.values()) or bool(
      self._left and not self._is_stopping
    )

  def _take_next(self, process: processes.Process) -> Iterator[None] | None:
    """Starts the first available run; returns None if there is none."""
    for run in list(self._left):
      if self._state(run):
        self._left.remove(run)
      # With slots of both kinds, training uses GPUs and evaluations use cores.
      elif self._is_mixed and process.slot.is_gpu == run.is_evaluation:
        continue
      elif run.is_ready(self._folder):
        job = self._execute(run, process)
        if not next(job, _ENDED):
          return job
    return None

  def _state(self, run: records.Runnable) -> str:
    """Returns the final state of a run; empty if the run is not settled."""
    if run.id in self._done or run.is_done(self._folder):
      self._done.add(run.id)
      return _DONE
    if records.has_failed(self._folder, run):
      return _FAILED
    needed = {self._state(needed) for needed in run.needed}
    return _BLOCKED if needed & {_FAILED, _BLOCKED} else ''

  def _execute(
    self, run: records.Runnable, process: processes.Process
  ) -> Iterator[None]:
    """Executes a run unless it is not available; yields while it runs."""
    with contextlib.ExitStack() as stack:
      lock = locks.held(records.path_of(self._folder, run, 'lock'))
      try:
        touch = stack.enter_context(lock)
      except BlockingIOError:
        return
      # No other host executes the run, because its lock was free. On this host,
      # the script of a killed worker may still be saving its state.
      workdir = self._folder / records.WORKDIRS / run.id
      workdir_lock.clear(workdir)
      # Another worker may have finished the run in the meantime.
      if locks.is_held(workdir) or self._state(run):
        return
      began = time.monotonic()
      records.begin(self._folder, run)
      log = records.path_of(self._folder, run, 'log')
      process.start(run.call(self._folder), log)
      if process.slot.name:
        self._say(f'{run.id}: starting on {process.slot.name}')
      on_news = functools.partial(self._on_news, run)
      yield
      while (code := process.poll(on_news)) is None:
        # Other workers see that this one is alive.
        if not touch():
          # This machine was suspended, and another one has resumed the run.
          process.kill()
          process.close()
          self._say(f'{run.id}: another worker has taken it over')
          return
        yield
      self._note_end(run, code, time.monotonic() - began)

  def _watch_runs(self) -> None:
    """Waits a moment, and continues the executions of all runs."""
    running = {process: job for process, job in self._jobs.items() if job}
    connection.wait([each.connection for each in running], _POLL_SECONDS)
    for process, job in running.items():
      if next(job, _ENDED):
        self._jobs[process] = None
        self._next_scan = 0.0

  def _note_end(self, run: records.Runnable, code: int, seconds: float) -> None:
    # A second Ctrl-C may kill the run first.
    is_stopping = self._is_stopping or bool(self._signum)
    news = records.end(
      self._folder, run, code, seconds, is_stopping=is_stopping
    )
    self._on_end(run, news)
    if code == records.WRONG_FLAGS and not is_stopping:
      tail = records.tail_of_log(self._folder, run)
      self._wrong_flags = '\n'.join([str(run), *tail])
      self._stop('a script rejected its flags')

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
      for process in self._jobs:
        process.stop()

  def _kill(self) -> None:
    for process in self._jobs:
      process.kill()

  def _note_signal(self, signum: int) -> None:
    """Stops the runs at the first signal; Ctrl-C after it kills them."""
    if self._signum and signum == signal.SIGINT:
      self._kill()
    self._signum = signum
