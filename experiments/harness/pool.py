"""The processes of this machine that execute runs, one for each slot.

Such a process outlasts its runs: what it has imported and compiled serves all
of them. This module imports nothing that learns, because the variables of the
slot have to be there first. A process has a session of its own, so that Ctrl-C
in a terminal reaches the driver alone, which passes it on. If the driver is
killed, the process and the script that it executes are asked to stop.
"""

import contextlib
import ctypes
import multiprocessing
import os
import pathlib
import queue
import signal
import subprocess
import sys
import traceback
from concurrent import futures
from typing import (
  Any,
  Callable,
  Dict,
  FrozenSet,
  Iterator,
  List,
  NamedTuple,
  Optional,
  Sequence,
)

ROOT = pathlib.Path(__file__).resolve().parents[2]  # Of the repository.
DIED = os.EX_SOFTWARE  # The exit code of a run whose process has ended.
# That of a machine of a cluster that does not have the folder of all runs.
NOT_SHARED = os.EX_NOINPUT

Report = Callable[[Any], None]
# Executes a run and returns its exit code, None for 0. It can be pickled.
Call = Callable[[Report], Optional[int]]

_PR_SET_PDEATHSIG = 1
_SPAWN = multiprocessing.get_context('spawn')


class Slot(NamedTuple):
  """A share of this machine.

  Attributes:
    name: says which, for readers; empty if all are alike.
    variables: the environment variables of what is executed in it.
    cores: the cores that it may use; empty for all.
    gpu_share: its share of a GPU; 0 for none.
  """

  name: str
  variables: Dict[str, str]
  cores: FrozenSet[int] = frozenset()
  gpu_share: float = 0.0

  @property
  def is_gpu(self) -> bool:
    """Whether it has a GPU."""
    return self.gpu_share > 0


class Process:
  """The process of a slot. It starts when it is needed.

  Attributes:
    slot: its share of the machine.
  """

  def __init__(self, slot: Slot):
    self.slot = slot
    self._pool: Optional[futures.ProcessPoolExecutor] = None

  def start(self, call: Call, log: pathlib.Path) -> 'futures.Future[int]':
    """Executes a run, whose output replaces a log."""
    while True:
      if self._pool is None:
        self._open()
      assert self._pool is not None
      try:
        return self._pool.submit(_execute, call, log)
      except futures.BrokenExecutor:  # It was killed between two runs.
        self._pool = None

  def exit_code(self, future: 'futures.Future[int]') -> int:
    """Returns the exit code of a run that has ended; negative for a signal."""
    try:
      return future.result()
    except futures.BrokenExecutor:
      self._pool = None
      return DIED

  def news(self) -> Iterator[Any]:
    """Yields what the run has reported since the last call."""
    while not self._news.empty():
      yield self._news.get()

  def stop(self) -> None:
    """Asks the run to save itself and to end."""
    with contextlib.suppress(ProcessLookupError, futures.BrokenExecutor):
      os.kill(self._pid.result(), signal.SIGINT)

  def kill(self) -> None:
    """Ends the process and what it has started, at once."""
    with contextlib.suppress(ProcessLookupError, futures.BrokenExecutor):
      os.killpg(self._pid.result(), signal.SIGKILL)

  def close(self) -> None:
    """Ends the process, if there is one, after its run."""
    if self._pool is not None:
      self._pool.shutdown()
      self._pool = None

  def _open(self) -> None:
    self._news = _SPAWN.SimpleQueue()
    self._pool = futures.ProcessPoolExecutor(
      1, _SPAWN, _enter, (self.slot, os.getpid(), self._news)
    )
    self._pid = self._pool.submit(os.getpid)


def run_script(
  command: Sequence[str], folder: pathlib.Path, report: Report
) -> int:
  """Executes a script in a folder; the `Call` of runs that are scripts."""
  del report
  return wait_for(
    subprocess.Popen(
      command, cwd=folder, env=_with_root(), preexec_fn=_stop_with_parent
    ),
    passed_on=(signal.SIGINT, signal.SIGTERM),
  )


def wait_for(
  process: 'subprocess.Popen[bytes]', passed_on: Sequence[signal.Signals]
) -> int:
  """Waits for a process, and meanwhile passes signals on to it.

  Ctrl-C does not interrupt the wait.

  Returns:
    Its exit code.
  """

  def handle(signum: int, frame: Any) -> None:
    del frame
    if signum in passed_on:
      process.send_signal(signum)

  before = {s: signal.signal(s, handle) for s in (signal.SIGINT, *passed_on)}
  try:
    return process.wait()
  finally:
    for signum, handler in before.items():
      signal.signal(signum, handler)


# What a process of a slot knows: the driver's process, and where news go.
_driver: List[int] = []
_news: List[Any] = []


def _enter(slot: Slot, driver: int, news: Any) -> None:
  """Prepares this process, before it imports anything that learns."""
  if os.getsid(0) != os.getpid():
    os.setsid()
  _driver.append(driver)
  _news.append(news)
  for signum in (signal.SIGINT, signal.SIGTERM):
    signal.signal(signum, signal.default_int_handler)
  signal.pthread_sigmask(signal.SIG_SETMASK, ())  # Ray blocks Ctrl-C.
  _stop_with_parent()
  os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
  os.environ.update(slot.variables)
  if slot.cores and hasattr(os, 'sched_setaffinity'):
    os.sched_setaffinity(0, slot.cores)


def execute(slot: Slot, call: Call, log: pathlib.Path) -> int:
  """Executes one run in this process, which was started for it alone."""
  lock = log.with_suffix('.lock')  # The driver holds it.
  if not (lock.is_dir() and any(lock.iterdir())):
    return NOT_SHARED
  _enter(slot, os.getppid(), queue.SimpleQueue())
  code = _execute(call, log)
  if code in (-signal.SIGINT, -signal.SIGTERM):
    return 128 - code
  return DIED if code < 0 else code


def _execute(call: Call, log: pathlib.Path) -> int:
  with log.open('wb') as file:
    for descriptor in (1, 2):
      os.dup2(file.fileno(), descriptor)
  try:
    return call(_news[0].put) or 0
  except KeyboardInterrupt:
    return 128 + signal.SIGINT
  except BaseException:
    traceback.print_exc()
    return 1
  finally:
    sys.stdout.flush()
    if os.getppid() != _driver[0]:  # No other run will ever come.
      os._exit(1)


def _stop_with_parent() -> None:
  """Has this process receive SIGTERM when the one that started it ends."""
  if hasattr(ctypes.CDLL(None), 'prctl'):
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _with_root() -> Dict[str, str]:
  path = [str(ROOT), os.environ.get('PYTHONPATH', '')]
  return {**os.environ, 'PYTHONPATH': os.pathsep.join(filter(None, path))}
