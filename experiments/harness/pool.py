"""Local processes that execute runs, one per slot.

Each process executes several runs, which share its imports and compiled
functions. This module does not import JAX, because the environment variables of
the slot must be set first. Each process starts its own session, so that Ctrl-C
in a terminal reaches only the driver, which forwards the signal. If the driver
is killed, the process and its script are asked to stop.
"""

import contextlib
import ctypes
import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import traceback
from concurrent import futures
from typing import Any, Callable, Iterator, NamedTuple, Sequence

from bt_acme.runtime import interrupts

ROOT = pathlib.Path(__file__).resolve().parents[2]  # The repository's root.
# The exit code of a run whose process was killed.
PROCESS_LOST = os.EX_SOFTWARE

Report = Callable[[Any], None]
# A picklable function that executes a run; returns an exit code, None for 0.
Call = Callable[[Report], int | None]

_PR_SET_PDEATHSIG = 1
_SPAWN = multiprocessing.get_context('spawn')


class Slot(NamedTuple):
  """A share of this machine.

  Attributes:
    name: the name in messages; empty if all slots are alike.
    variables: the environment variables of its process.
    cores: the cores that its process may use; empty for all.
    gpu_share: the share of a GPU; 0 for none.
  """

  name: str
  variables: dict[str, str]
  cores: frozenset[int] = frozenset()
  gpu_share: float = 0.0

  @property
  def is_gpu(self) -> bool:
    """Whether the slot has a GPU."""
    return self.gpu_share > 0


class Process:
  """The process of a slot, which is started for the first run.

  Attributes:
    slot: the share of the machine that runs may use.
  """

  def __init__(self, slot: Slot):
    self.slot = slot
    self._pool: futures.ProcessPoolExecutor | None = None

  def start(self, call: Call, log: pathlib.Path) -> 'futures.Future[int]':
    """Starts a run and overwrites a log with its output."""
    while True:
      if self._pool is None:
        self._open()
      assert self._pool is not None
      try:
        return self._pool.submit(_execute, call, log)
      except futures.BrokenExecutor:  # The process was killed between two runs.
        self._pool = None

  def exit_code(self, future: 'futures.Future[int]') -> int:
    """Returns the exit code of a finished run; negative for a signal."""
    try:
      return future.result()
    except futures.BrokenExecutor:
      self._pool = None
      return PROCESS_LOST

  def news(self) -> Iterator[Any]:
    """Yields the values that the run has reported since the last call."""
    while not self._news.empty():
      yield self._news.get()

  def stop(self) -> None:
    """Asks the run to save its state and exit."""
    with contextlib.suppress(ProcessLookupError, futures.BrokenExecutor):
      os.kill(self._pid.result(), signal.SIGINT)

  def kill(self) -> None:
    """Kills the process and its child processes."""
    with contextlib.suppress(ProcessLookupError, futures.BrokenExecutor):
      os.killpg(self._pid.result(), signal.SIGKILL)

  def close(self) -> None:
    """Waits for the current run and shuts down the process."""
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
  """Executes a script in a directory; the `Call` of runs that are scripts."""
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
  """Waits for a process and forwards signals to it.

  Ctrl-C does not interrupt the wait.

  Returns:
    The exit code of the process.
  """

  def pass_on(signum: signal.Signals) -> None:
    if signum in passed_on:
      process.send_signal(signum)

  with interrupts.handled({signal.SIGINT, *passed_on}, pass_on):
    return process.wait()


# State of a slot's process: the driver's PID and the queue for reports.
_driver: list[int] = []
_news: list[Any] = []


def _enter(slot: Slot, driver: int, news: Any) -> None:
  """Prepares this process before it imports JAX."""
  os.setsid()
  _driver.append(driver)
  _news.append(news)
  for signum in (signal.SIGINT, signal.SIGTERM):
    signal.signal(signum, signal.default_int_handler)
  _stop_with_parent()
  os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
  os.environ.update(slot.variables)
  if slot.cores and hasattr(os, 'sched_setaffinity'):
    os.sched_setaffinity(0, slot.cores)


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
    if os.getppid() != _driver[0]:  # The driver has exited.
      os._exit(1)


def _stop_with_parent() -> None:
  """Makes the kernel send SIGTERM to this process when its parent exits."""
  if hasattr(ctypes.CDLL(None), 'prctl'):
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _with_root() -> dict[str, str]:
  path = [str(ROOT), os.environ.get('PYTHONPATH', '')]
  return {**os.environ, 'PYTHONPATH': os.pathsep.join(filter(None, path))}
