"""The events of a running program.

Engines and signals put events into a queue; the supervisor takes them one by
one.
"""

import contextlib
import queue
import signal
import time
from typing import NamedTuple

# Python runs a signal handler once the main thread wakes up. A signal that
# another thread receives does not wake it up.
_WAKE_UP_SECONDS = 0.2


class NodeScheduled(NamedTuple):
  """A node has been scheduled on a machine and can be started there.

  Attributes:
    title: the node's title, `LABEL/INDEX`.
    addresses: `host:port` of each port that the node listens on.
    host: the machine; empty if there is only one.
  """

  title: str
  addresses: list[str]
  host: str = ''


class NodePending(NamedTuple):
  """A node has not been scheduled yet.

  Attributes:
    title: the node's title, `LABEL/INDEX`.
    reason: the reason for the delay, as text for the user.
  """

  title: str
  reason: str


class Output(NamedTuple):
  """A node has written to one of its pipes.

  Attributes:
    title: the node's title, `LABEL/INDEX`.
    stream: `stdout`, `stderr` or `heartbeats`.
    data: the bytes. They may start or end within a line; heartbeats are marks
      of `runtime.heartbeats`.
  """

  title: str
  stream: str
  data: bytes


class NodeExited(NamedTuple):
  """A node has exited; its output and heartbeats were posted before.

  Attributes:
    title: the node's title, `LABEL/INDEX`.
    code: the exit code, or minus the number of the signal that killed the node.
    reason: how the node exited, as in 'failed.'; empty to describe the code.
    traceback: the traceback of the exception that ended the node, if its output
      does not contain the traceback.
    lost: whether the node's slot was lost as well.
  """

  title: str
  code: int
  reason: str = ''
  traceback: str = ''
  lost: bool = False


Event = NodeScheduled | NodePending | Output | NodeExited


class EventQueue(queue.SimpleQueue[Event | signal.Signals]):
  """A queue of events and signals for the main thread.

  Unlike `queue.Queue`, it lets a signal handler call `put` at any time.
  """

  def get(  # type: ignore[override]
    self, timeout: float
  ) -> Event | signal.Signals:
    """Removes and returns the next event.

    Args:
      timeout: maximum wait in seconds.

    Raises:
      queue.Empty: after the timeout.
    """
    deadline = time.monotonic() + timeout
    while True:
      # `put` may have opened the lock of the queue for an event that was taken
      # since. Python 3.10 would then compute a negative timeout below, and wait
      # forever. This call closes the lock.
      with contextlib.suppress(queue.Empty):
        return super().get(block=False)
      left = deadline - time.monotonic()
      if left <= 0:
        raise queue.Empty
      with contextlib.suppress(queue.Empty):
        return super().get(timeout=min(left, _WAKE_UP_SECONDS))
