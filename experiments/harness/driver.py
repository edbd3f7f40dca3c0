"""Works through runs: any number of workers, on any number of machines.

All workers share one folder. Each takes the first run that no other worker has
and whose needs are there, has the process of a slot execute it, and acts on how
it ends:

  0        done, once the run has left all that it should
  128 + n  stopped by signal n, and saved: it is free to be resumed
  2        wrong flags: this worker stops, because no other run would do better
  others   it is started twice more; then it has failed
"""

import collections
import contextlib
import pathlib
import signal
import time
from concurrent import futures
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
  Union,
)

from bt_acme.runtime import workdir_lock
from experiments.harness import cluster, locks, pool, records
from experiments.harness import slots as slots_lib

# A worker that has found nothing to start looks again after so many polls.
_SCAN_POLLS = 10
# A run that does not save itself for as long after a signal is killed.
_GRACE_SECONDS = 300.0
# How a run is settled.
_DONE, _FAILED, _BLOCKED = 'done', 'failed', 'blocked'
_POLL_SECONDS = 0.2  # Some runs of functions take seconds.


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
  failed: List[records.Runnable]
  blocked: List[records.Runnable]
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
    """The exit code of a command that was to do all runs."""
    if self.wrong_flags:
      return records.WRONG_FLAGS
    return 128 + self.signum if self.signum else int(bool(self.failed))


Process = Union[pool.Process, cluster.ClusterProcess]


class _Job(NamedTuple):
  """A run in the process of a slot."""

  task: records.Runnable
  process: Process
  lock: locks.Lock
  began: float


class Worker:
  """Executes runs in the slots of this machine."""

  def __init__(
    self,
    folder: pathlib.Path,
    todo: Sequence[records.Runnable],
    processes: Sequence[Process],
    *,
    hours: float = float('inf'),
    say: Callable[[str], None] = print,
    on_end: Optional[Callable[[Any, str], None]] = None,
    on_news: Callable[[Any, Any], None] = lambda task, news: None,
    poll_seconds: float = 1.0,
  ):
    """Prepares the work; `work` begins it.

    Args:
      folder: the folder of all runs.
      todo: the runs, in their order. What they need may be other workers'.
      processes: as many runs are executed at a time, one in each.
      hours: after so long all are stopped, and saved.
      say: is called with a line of news.
      on_end: takes each run that has ended, and how; `say` if not given.
      on_news: takes a run and what it reports.
      poll_seconds: how often processes and files are looked at.
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
    self._jobs: Dict['futures.Future[int]', _Job] = {}
    self._settled: Dict[str, List[records.Runnable]] = collections.defaultdict(
      list
    )
    self._done: Set[str] = set()  # What has been found done stays so.
    self._scan_again = 0.0
    self._wrong_flags = ''
    self._signum = 0
    self._stopped_at = float('inf')

  def work(self) -> Outcome:
    """Works until all is done or has failed, or until it is stopped."""
    with self._signals(), contextlib.ExitStack() as stack:
      for process in self._free:
        stack.callback(process.close)
      stack.callback(self._ask_to_end)  # First of all, if there is an error.
      self._fill()
      while self._jobs or (self._open and not self._is_stopping):
        self._wait()
        self._collect()
        self._stop_if_due()
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
    """Starts what can be started."""
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
    # What is left waits for other workers, or for the runs of this one.
    self._scan_again = time.monotonic() + _SCAN_POLLS * self._poll_seconds

  def _settle(self, task: records.Runnable) -> bool:
    """Returns whether there is nothing more to do for a run, and notes why."""
    state = self._state(task)
    if state:
      self._settled[state].append(task)
      self._open.remove(task)
    return bool(state)

  def _state(self, task: records.Runnable) -> str:
    """Returns how a run is settled; empty if it is not."""
    if task.id in self._done or task.is_done(self._folder):
      self._done.add(task.id)
      return _DONE
    if records.has_failed(self._folder, task):
      return _FAILED
    needed = {self._state(needed) for needed in task.needed}
    return _BLOCKED if needed & {_FAILED, _BLOCKED} else ''

  def _take(self, task: records.Runnable) -> None:
    """Starts a run, unless there is no slot, or another worker has it."""
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
      self._say(f'{task.id}: begins on {process.slot.name}')

  def _fits(self, task: records.Runnable, process: Process) -> bool:
    """Returns whether a run belongs in a slot.

    With slots of both kinds, runs learn on GPUs, and evaluations leave these
    free: they play on cores.
    """
    return not self._is_mixed or process.slot.is_gpu != task.is_evaluation

  def _lock(self, task: records.Runnable) -> Optional[locks.Lock]:
    """Takes the right to execute a run; None if it is not to be had now."""
    try:
      lock = locks.Lock(records.path_of(self._folder, task, 'lock'))
    except BlockingIOError:
      return None
    # No other host has the run, or its lock were not free. On this one, the
    # script of a worker that was killed may still save itself.
    workdir = self._folder / records.WORKDIRS / task.id
    workdir_lock.clear(workdir)
    # Another worker may have done it since this one looked.
    if locks.is_held(workdir) or self._state(task):
      lock.release()
      return None
    return lock

  def _wait(self) -> None:
    """Waits for the next end, at most for as long as between two polls."""
    if self._jobs:
      futures.wait(self._jobs, self._poll_seconds, futures.FIRST_COMPLETED)
    else:
      time.sleep(self._poll_seconds)

  def _collect(self) -> None:
    """Takes what runs report, and how they end."""
    for future, job in list(self._jobs.items()):
      has_ended = future.done()  # Asked before, so that all its news are there.
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
      self._stop('a script refuses its flags')

  def _touch(self) -> None:
    """Shows other workers that this one lives."""
    for future, job in list(self._jobs.items()):
      if not job.lock.touch():
        # This machine had slept, and another one continues the run.
        job.process.kill()
        job.process.close()
        self._drop(future)
        self._say(f'{job.task.id}: another worker has taken it over')

  def _stop_if_due(self) -> None:
    now = time.monotonic()
    if self._signum:
      self._stop(signal.Signals(self._signum).name)
    elif now > self._deadline:
      self._stop('the hours are over')
    if now > self._stopped_at + _GRACE_SECONDS:
      self._kill()

  def _stop(self, why: str) -> None:
    """Has all runs save themselves and end."""
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

  @contextlib.contextmanager
  def _signals(self) -> Iterator[None]:
    """Within the block, a signal stops the work; a second one kills it."""

    def note(signum: int, frame: Any) -> None:
      del frame
      if self._signum:
        self._kill()
      self._signum = signum

    before = {signum: signal.signal(signum, note) for signum in stop_signals()}
    try:
      yield
    finally:
      for signum, handler in before.items():
        signal.signal(signum, handler)


def stop_signals() -> List[signal.Signals]:
  """Returns the signals that stop this process.

  What was started by nohup keeps running when its terminal is closed.
  """
  hears = signal.getsignal(signal.SIGHUP) != signal.SIG_IGN
  return [s for s in records.STOPS if hears or s != signal.SIGHUP]


def complete(
  folder: pathlib.Path,
  todo: Sequence[records.Runnable],
  *,
  processes: int,
  say: Callable[[str], None],
  on_done: Callable[[Any], None],
  on_news: Callable[[Any, Any], None] = lambda task, news: None,
) -> int:
  """Executes what is not done, next to other workers on the same folder.

  Args:
    folder: the folder of all runs.
    todo: the runs, in their order.
    processes: how many are executed at a time, with one thread each.
    say: is called with a line of news.
    on_done: takes each run that is done, which `say` is not told then.
    on_news: takes a run and what it reports.

  Returns:
    An exit code, after it is said what has gone wrong.
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
    say(f'{ended} The same command continues with what is left.')
  return ended.exit_code
