"""Ctrl-C, and the other signals that stop a program, as events.

The first signal asks all nodes to stop within the seconds of grace. A second
one kills them immediately. `supervisor.Supervisor` acts on both.
"""

import functools
import signal
from typing import List, NamedTuple

from bt_acme.runtime import events

# A shell reports a program that a signal has ended with this number plus the
# number of the signal.
EXIT_CODE_BASE = 128


class Interrupt(NamedTuple):
  """The user, or the system, wants the program to stop."""

  signum: signal.Signals

  @property
  def exit_code(self) -> int:
    """The program's exit code: 130 after Ctrl-C."""
    return EXIT_CODE_BASE + self.signum

  @property
  def message(self) -> str:
    """The message to the user."""
    return (
      f'{self.signum.name}: stopping. Send it again to kill everything '
      'immediately.'
    )


def post_to(queue: events.EventQueue) -> None:
  """Posts an `Interrupt` for every signal that is to stop the program."""
  for signum in _stop_signals():
    queue.on_signal(signum, functools.partial(queue.post, Interrupt(signum)))


def _stop_signals() -> List[signal.Signals]:
  signals = [signal.SIGINT, signal.SIGTERM]
  # A program that was started by nohup goes on when its terminal is closed.
  if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
    signals.append(signal.SIGHUP)
  return signals
