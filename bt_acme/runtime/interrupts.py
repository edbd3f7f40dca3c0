"""Handles Ctrl-C and the other signals that stop a program.

For a program of many processes, `put_into` turns the signals into events, and
`supervisor.Supervisor` acts on them: the first signal asks all nodes to stop
within the shutdown timeout, and the second one kills them immediately. `noted`
is for a run in one process.
"""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bt_acme.runtime import events

# If a signal ends a program, shells report this number plus the number of the
# signal as its exit code.
_EXIT_CODE_BASE = 128


def exit_code(signum: signal.Signals) -> int:
  """Returns the exit code of a stopped program: 130 after Ctrl-C."""
  return _EXIT_CODE_BASE + signum


@contextlib.contextmanager
def put_into(queue: events.EventQueue) -> Iterator[None]:
  """Puts signals that stop a program into a queue while the block runs."""

  def put(signum: int, frame: Any) -> None:
    del frame
    queue.put(signal.Signals(signum))

  previous = {s: signal.signal(s, put) for s in _stop_signals()}
  if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
    # While SIGCHLD is ignored, the kernel discards the exit codes of nodes.
    previous[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
  try:
    yield
  finally:
    _restore(previous)


def _restore(handlers: Mapping[signal.Signals, Any]) -> None:
  for signum, handler in handlers.items():
    # A handler that was not installed by Python is None.
    signal.signal(signum, signal.SIG_DFL if handler is None else handler)


def _stop_signals() -> list[signal.Signals]:
  signals = [signal.SIGINT, signal.SIGTERM]
  # A program started by nohup keeps running when its terminal is closed.
  if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
    signals.append(signal.SIGHUP)
  return signals


@contextlib.contextmanager
def noted() -> Iterator[Callable[[], signal.Signals | None]]:
  """Records the first signal within the block instead of acting on it.

  The second one has its usual effect, which is KeyboardInterrupt for Ctrl-C.
  Python handles signals only in the main thread, so the block has no effect in
  other threads.

  Yields:
    A function that returns the first signal; None before it arrives.
  """
  note: list[signal.Signals] = []
  if threading.current_thread() is not threading.main_thread():
    yield lambda: None
    return
  before = {signum: signal.getsignal(signum) for signum in _stop_signals()}

  def take_note(signum: int, frame: Any) -> None:
    del frame
    note.append(signal.Signals(signum))
    _restore(before)

  for signum in before:
    signal.signal(signum, take_note)
  try:
    yield lambda: note[0] if note else None
  finally:
    _restore(before)
