"""Heartbeats, by which nodes report that they make progress.

A node sends a heartbeat whenever it makes progress: one byte through a pipe
that its engine has opened. Without heartbeats, the supervisor considers the
node to hang. A second kind of byte reports that the node was told to stop;
unless the launcher told it, the node has failed, even with exit code 0. A third
kind reports that the node has saved everything, so that nothing is lost if it
is slow to exit.
"""

import contextlib
import functools
import math
import os
import time
from collections.abc import Callable

from bt_acme.runtime.engines import node_process

# Environment variable of a supervised process: the number of previous attempts
# of its node.
ATTEMPT_VARIABLE = 'BT_ACME_ATTEMPT'
OLD_ATTEMPT_VARIABLE = 'BT_ACME_LIFE'  # Set until the next release.
# Environment variable with the node's title, for anyone who lists processes.
TITLE_VARIABLE = 'BT_ACME_NODE'
MARK, STOP_MARK, SAVED_MARK = b'.', b't', b's'
PERIOD = 1.0  # Seconds between two heartbeats, and between two checks.


def attempt() -> int:
  """Returns the number of previous attempts of this process's node."""
  return int(os.environ.get(ATTEMPT_VARIABLE, '0'))


def is_supervised() -> bool:
  """Returns whether a supervisor receives this process's heartbeats."""
  return _descriptor() >= 0


@functools.cache
def _descriptor() -> int:
  """Returns the file descriptor of the heartbeat pipe; -1 if there is none.

  Removes the variable: child processes would inherit it, but not the pipe.
  """
  return int(os.environ.pop(node_process.PIPE_VARIABLE, '-1'))


def make_heartbeat(
  clock: Callable[[], float] = time.monotonic,
) -> Callable[[], None]:
  """Returns a function that sends a heartbeat, at most once a second.

  The function does nothing in a process without a supervisor.

  Args:
    clock: a function that returns seconds.
  """
  if not is_supervised():
    return lambda: None
  last = -math.inf

  def send() -> None:
    nonlocal last
    if clock() - last >= PERIOD:
      last = clock()
      _send(MARK)

  return send


def report_stopping() -> None:
  """Reports that this process's node was told to stop."""
  _send(STOP_MARK)


def report_saved() -> None:
  """Reports that this process's node has nothing left to save."""
  _send(SAVED_MARK)


def _send(mark: bytes) -> None:
  # Writing fails once the launcher is gone; this process is then killed anyway.
  with contextlib.suppress(OSError):
    if is_supervised():
      os.write(_descriptor(), mark)
