"""Executes runs with any number of workers on any number of machines.

All workers share one directory. For each slot of its machine, a worker has a
thread, which takes the first run that no other worker holds and whose
dependencies are done, executes it in the process of the slot, and then acts on
its exit code:

  0        the run is done, provided that all its output files exist
  128 + n  stopped by signal n and saved: any worker can resume it
  2        invalid flags: the worker stops, because other runs would fail too
  other    the run is started again, up to twice; then it has failed
"""

import collections
import contextlib
import functools
import pathlib
import queue
import signal
import threading
import time
from concurrent import futures
from typing import Any, Callable, NamedTuple, Sequence

from bt_acme.runtime import interrupts, workdir_lock
from experiments.harness import locks, processes, records

# Seconds between two checks of runs, signals and the time limit.
_POLL_SECONDS = 0.2
# Seconds between two searches for runs that other workers have enabled or left.
_SCAN_SECONDS = 10.0
# Shutdown timeout: a run that is still saving after this long is killed.
_SHUTDOWN_SECONDS = 300.0
# Final states of a run.
_DONE, _FAILED, _BLOCKED = 'done', 'failed', 'blocked'


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


class Worker:
  """Executes runs in the slots of this machine."""

  def __init__(
    self,
    folder: pathlib.Path,
    todo: Sequence[records.Runnable],
    slots: Sequence[processes.Slot],
    *,
    hours: float = float('inf'),
    say: Callable[[str], None] = print,
    on_end: Callable[[Any, str, bool], None] | None = None,
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
      on_end: called with each run that has ended, its outcome in words, and
        whether it was done then; by default, the outcome is passed to `say`.
      on_news: called with a run and each value that the run reports.
    """
    self._folder = folder.absolute()
    self._todo = todo
    self._processes = [processes.Process(slot) for slot in slots]
    self._is_mixed = len({slot.is_gpu for slot in slots}) > 1
    self._deadline = time.monotonic() + 3600 * hours
    self._say = say
    self._on_end = on_end or (lambda run, news, _: say(f'{run.id}: {news}'))
    self._on_news = on_news
    # Calls of the threads that the main thread makes.
    self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
    self._done: set[str] = set()  # Cache: a run that is done stays done.
    # Held to start a run or to stop all; notified when a run has ended.
    self._changing = threading.Condition()
    self._is_stopping = False
    self._stopped_at = float('inf')
    self._wrong_flags = ''
    self._signum = 0

  def work(self) -> Outcome:
    """Executes runs until all are done or failed, or until stopped."""
    with (
      interrupts.handled(interrupts.stop_signals(), self._note_signal),
      futures.ThreadPoolExecutor(len(self._processes)) as threads,
    ):
      working = {threads.submit(self._serve, each) for each in self._processes}
      try:
        while working:
          ended, working = futures.wait(
            working, _POLL_SECONDS, futures.FIRST_COMPLETED
          )
          while not self._calls.empty():
            self._calls.get()()
          for thread in ended:
            thread.result()
          self._stop_if_needed()
      finally:
        self._ask_to_end()
    states: dict[str, list[records.Runnable]] = collections.defaultdict(list)
    for run in self._todo:
      states[self._state(run)].append(run)
    return Outcome(
      *(len(states[_DONE]), states[_FAILED], states[_BLOCKED]),
      *(len(states['']), self._wrong_flags, self._signum),
    )

  def _serve(self, process: processes.Process) -> None:
    """Executes runs in a process until all are settled; called in a thread."""
    # With slots of both kinds, training uses GPUs and evaluations use cores.
    todo = [
      run
      for run in self._todo
      if not self._is_mixed or process.slot.is_gpu != run.is_evaluation
    ]
    with contextlib.closing(process):
      while todo and not self._is_stopping:
        for run in list(todo):
          if self._state(run):
            todo.remove(run)
          elif run.is_ready(self._folder) and self._take(run, process):
            break
        else:  # The remaining runs wait for others.
          with self._changing:
            if not self._is_stopping:
              self._changing.wait(_SCAN_SECONDS)

  def _state(self, run: records.Runnable) -> str:
    """Returns the final state of a run; empty if the run is not settled."""
    if run.id in self._done or run.is_done(self._folder):
      self._done.add(run.id)
      return _DONE
    if records.has_failed(self._folder, run):
      return _FAILED
    needed = {self._state(needed) for needed in run.needed}
    return _BLOCKED if needed & {_FAILED, _BLOCKED} else ''

  def _take(self, run: records.Runnable, process: processes.Process) -> bool:
    """Executes a run; returns False if the run is not available."""
    with contextlib.ExitStack() as stack:
      lock = locks.held(records.path_of(self._folder, run, 'lock'))
      try:
        touch = stack.enter_context(lock)
      except BlockingIOError:
        return False
      # No other host executes the run, because its lock was free. On this host,
      # the script of a killed worker may still be saving its state.
      workdir = self._folder / records.WORKDIRS / run.id
      workdir_lock.clear(workdir)
      # Another worker may have finished the run in the meantime.
      if locks.is_held(workdir) or self._state(run):
        return False
      began = time.monotonic()
      code = self._execute(run, process, touch)
      if code is not None:
        self._note_end(run, code, time.monotonic() - began)
    with self._changing:
      self._changing.notify_all()
    return True

  def _execute(
    self,
    run: records.Runnable,
    process: processes.Process,
    touch: Callable[[], bool],
  ) -> int | None:
    """Returns the exit code of a run; None if another worker has the run."""
    with self._changing:
      if self._is_stopping:
        return None
      records.begin(self._folder, run)
      log = records.path_of(self._folder, run, 'log')
      process.start(run.call(self._folder), log)
    if process.slot.name:
      self._tell(self._say, f'{run.id}: starting on {process.slot.name}')
    on_news = functools.partial(self._tell, self._on_news, run)
    while (code := process.wait(_POLL_SECONDS, on_news)) is None:
      # Other workers see that this one is alive.
      if not touch():
        # This machine was suspended, and another one has resumed the run.
        process.kill()
        process.close()
        self._tell(self._say, f'{run.id}: another worker has taken it over')
        break
    return code

  def _note_end(self, run: records.Runnable, code: int, seconds: float) -> None:
    news = records.end(
      self._folder, run, code, seconds, is_stopping=self._is_stopping
    )
    # When the main thread calls it, the run may have been started again.
    self._tell(self._on_end, run, news, run.is_done(self._folder))
    if code == records.WRONG_FLAGS and not self._is_stopping:
      tail = records.tail_of_log(self._folder, run)
      self._wrong_flags = '\n'.join([str(run), *tail])
      self._stop('a script rejected its flags')

  def _tell(self, function: Callable[..., None], *values: Any) -> None:
    """Calls a function in the main thread, later."""
    self._calls.put(functools.partial(function, *values))

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
      self._tell(self._say, f'Stopping: {why}.')
      self._ask_to_end()

  def _ask_to_end(self) -> None:
    with self._changing:
      self._is_stopping = True
      self._changing.notify_all()
      for process in self._processes:
        process.stop()

  def _kill(self) -> None:
    for process in self._processes:
      process.kill()

  def _note_signal(self, signum: int) -> None:
    """Stops the runs at the first signal and kills them at the second."""
    if self._signum:
      self._kill()
    self._signum = signum
