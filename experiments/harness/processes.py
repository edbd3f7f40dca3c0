"""Local processes that execute runs, one per slot.

Each process executes several runs, which share its imports and compiled
functions. This module does not import JAX, because the environment variables of
the slot must be set first. Each process starts its own session, so that Ctrl-C
in a terminal reaches only the worker, which forwards the signal. If the worker
is killed, the process is asked to stop.
"""

import contextlib
import ctypes
import multiprocessing
import os
import pathlib
import signal
import sys
import traceback
from collections.abc import Callable
from multiprocessing import resource_tracker
from typing import Any, NamedTuple

from bt_acme.runtime import interrupts

# The exit code of a run whose process was killed.
PROCESS_LOST = os.EX_SOFTWARE

Report = Callable[[Any], None]
# A picklable function that executes a run; returns an exit code, None for 0.
Call = Callable[[Report], int | None]

_PR_SET_PDEATHSIG = 1
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_SPAWN = multiprocessing.get_context('spawn')


class Slot(NamedTuple):
  """A share of this machine.

  Attributes:
    name: the name in messages; empty if all slots are alike.
    variables: the environment variables of its process.
    cores: the cores that its process may use; empty for all.
    is_gpu: whether the slot has a GPU, or a share of one.
  """

  name: str
  variables: dict[str, str]
  cores: frozenset[int] = frozenset()
  is_gpu: bool = False


class Process:
  """The process of a slot, which is started for the first run.

  Attributes:
    slot: the share of the machine that runs may use.
    connection: readable if the run has ended or reports a value.
  """

  def __init__(self, slot: Slot):
    self.slot = slot
    self._process: Any = None

  def start(self, call: Call, log: pathlib.Path) -> None:
    """Starts a run and overwrites a log with its output."""
    if self._process is None or not self._process.is_alive():
      self.connection, theirs = _SPAWN.Pipe()
      resource_tracker.ensure_running()  # Its start would unblock signals.
      # Until the process can handle signals, they wait.
      mask = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
      process = _SPAWN.Process(target=_serve, args=(self.slot, theirs))
      process.start()
      signal.pthread_sigmask(signal.SIG_SETMASK, mask)
      theirs.close()
      self._process = process
    with contextlib.suppress(BrokenPipeError):  # `poll` notes the loss.
      self.connection.send((call, log))

  def poll(self, on_news: Report) -> int | None:
    """Receives a value from the run, if one has arrived on `connection`.

    Args:
      on_news: called with a value that the run reports.

    Returns:
      The exit code of the run, negative for a signal; None if it still runs.
    """
    try:
      if not self.connection.poll():
        return None
      has_ended, value = self.connection.recv()
    except (EOFError, ConnectionResetError):
      self._signal(os.killpg, signal.SIGTERM)  # Its script may still run.
      self._process.join()
      return PROCESS_LOST
    if has_ended:
      return int(value)
    on_news(value)
    return None

  def stop(self) -> None:
    """Asks the run to save its state and exit."""
    self._signal(os.kill, signal.SIGINT)

  def kill(self) -> None:
    """Kills the process and its child processes."""
    self._signal(os.killpg, signal.SIGKILL)
    # A process that has just been started has no group of its own yet.
    self._signal(os.kill, signal.SIGKILL)

  def close(self) -> None:
    """Shuts down the process, which does not execute a run."""
    if self._process is not None:
      with contextlib.suppress(OSError):  # The process was killed.
        self.connection.send(None)
      self._process.join()
      self._process = None

  def _signal(
    self, send: Callable[[int, int], None], signum: signal.Signals
  ) -> None:
    if self._process is not None:
      with contextlib.suppress(ProcessLookupError):
        send(self._process.pid, signum)


def _serve(slot: Slot, connection: Any) -> None:
  """Executes the runs that the worker sends."""
  stops: list[int] = []  # Signals that have arrived between two runs.
  os.setsid()
  for signum in _SIGNALS:
    signal.signal(signum, lambda signum, frame: stops.append(signum))
  signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
  if hasattr(ctypes.CDLL(None), 'prctl'):  # SIGTERM when the worker exits.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
  os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
  os.environ.update(slot.variables)
  if slot.cores and hasattr(os, 'sched_setaffinity'):
    os.sched_setaffinity(0, slot.cores)
  with contextlib.suppress(EOFError, OSError):  # The worker has exited.
    for call, log in iter(connection.recv, None):
      connection.send((True, _execute(call, log, connection, stops)))


def _execute(
  call: Call, log: pathlib.Path, connection: Any, stops: list[int]
) -> int:
  """Executes a run, unless a signal has arrived, and returns its exit code."""

  def interrupt(signum: int) -> None:
    raise KeyboardInterrupt

  with log.open('wb') as file:
    for descriptor in (1, 2):
      os.dup2(file.fileno(), descriptor)
  try:
    with interrupts.handled(_SIGNALS, interrupt):
      if stops:
        stops.clear()
        raise KeyboardInterrupt
      return call(lambda news: connection.send((False, news))) or 0
  except (KeyboardInterrupt, SystemExit):  # A run was stopped.
    return 128 + signal.SIGINT
  except BaseException:
    traceback.print_exc()
    return 1
  finally:
    sys.stdout.flush()
