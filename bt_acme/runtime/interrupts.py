"""Handles Ctrl-C and the other signals that stop a program.

For a program of many processes, `put_into` turns the signals into events, and
`supervisor.Supervisor` acts on them: the first signal asks all nodes to stop
within the shutdown timeout, and Ctrl-C after it kills them immediately. Other
signals often arrive twice: a closed terminal sends two SIGHUP, and `timeout`
two SIGTERM. `noted` is for a run in one process, and `handled` for the workers
of experiments. `end_at_once` is for launch scripts, outside of these
blocks. The last checkpoint is written by
`learner_node.LearnerNode.stop`, or by `engines.in_process.InProcess.run`.
"""

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from bt_acme.runtime import events

# The exit code of a run that a callback has stopped.
STOPPED = 75  # EX_TEMPFAIL of sysexits.h: the same command resumes the run.


def exit_code(signum: signal.Signals) -> int:
  """Returns the exit code of a stopped program: 130 after Ctrl-C.

  Shells report the same code for a program that the signal ends.
  """
  return 128 + signum


def stop_signals() -> list[signal.Signals]:
  """Returns the signals that stop this process.

  A program started by nohup keeps running when its terminal is closed.
  """
  signals = [signal.SIGINT, signal.SIGTERM]
  if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
    signals.append(signal.SIGHUP)
  return signals


def end_at_once() -> None:
  """Makes Ctrl-C end this process immediately, with one line and code 130.

  KeyboardInterrupt would print a long traceback during imports, and Python
  drops exceptions in callbacks of the garbage collector, such as JAX's.
  """

  def end(signum: int, frame: Any) -> None:
    os.write(2, b'\nStopped by Ctrl-C. Rerun the same command.\n')
    os._exit(exit_code(signal.Signals(signum)))

  signal.signal(signal.SIGINT, end)


@contextlib.contextmanager
def handled(
  signals: Iterable[signal.Signals],
  act: Callable[[signal.Signals], None],
  *,
  once: bool = False,
) -> Iterator[None]:
  """Calls a function with each signal, instead of the existing handlers.

  Python handles signals only in the main thread, so the block has no effect in
  other threads.

  Args:
    signals: the signals.
    act: called with each signal that arrives while the block runs.
    once: whether the first signal restores the existing handler of Ctrl-C.
  """
  if threading.current_thread() is not threading.main_thread():
    yield
    return
  before = {signum: signal.getsignal(signum) for signum in signals}

  def restore(signums: Iterable[signal.Signals]) -> None:
    for signum in signums:
      # A handler that was not installed by Python is None.
      signal.signal(signum, before[signum] or signal.SIG_DFL)

  def handle(signum: int, frame: Any) -> None:
    act(signal.Signals(signum))
    if once:
      restore([signal.SIGINT])

  for signum in before:
    signal.signal(signum, handle)
  try:
    yield
  finally:
    restore(before)


@contextlib.contextmanager
def put_into(queue: events.EventQueue) -> Iterator[None]:
  """Puts signals that stop a program into a queue while the block runs."""
  # While SIGCHLD is ignored, the kernel discards the exit codes of nodes.
  keep_codes = handled([signal.SIGCHLD], lambda signum: None)
  with keep_codes, handled(stop_signals(), queue.put):
    yield


@contextlib.contextmanager
def noted() -> Iterator[Callable[[], signal.Signals | None]]:
  """Records the first signal within the block instead of acting on it.

  Ctrl-C after it raises KeyboardInterrupt as usual; others have no effect.

  Yields:
    A function that returns the first signal; None before it arrives.

  Raises:
    SystemExit: at the end of the block, with `exit_code`, if the first signal
      was not Ctrl-C: a program that is told to stop shall do nothing else.
  """
  note: list[signal.Signals] = []
  with handled(stop_signals(), note.append, once=True):
    yield lambda: note[0] if note else None
  if note and note[0] != signal.SIGINT:
    raise SystemExit(exit_code(note[0]))
