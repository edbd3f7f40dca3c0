"""The events of a running program.

Engines and signals put events into a queue; the supervisor takes them one by
one.
"""

import collections
import contextlib
import math
import os
import queue
import select
import signal
import time
import weakref
from typing import NamedTuple

_READ_SIZE = 1 << 16


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


class EventQueue:
  """A queue of events and signals for the main thread.

  Unlike with the queues of the standard library, a signal handler may call
  `put`, and a signal that another thread receives wakes up `get`.

  Attributes:
    wake_up_descriptor: a file descriptor for `signal.set_wakeup_fd`.
  """

  def __init__(self) -> None:
    """Initializes an empty queue, and opens the pipe that wakes up `get`."""
    self._events: collections.deque[Event | signal.Signals] = (
      collections.deque()
    )
    descriptors = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    self._reader, self.wake_up_descriptor = descriptors
    for descriptor in descriptors:
      weakref.finalize(self, os.close, descriptor)
    self._poll = select.poll()
    self._poll.register(self._reader, select.POLLIN)

  def put(self, event: Event | signal.Signals) -> None:
    """Adds an event, from any thread or signal handler."""
    self._events.append(event)
    with contextlib.suppress(BlockingIOError):  # A full pipe wakes up `get`.
      os.write(self.wake_up_descriptor, b'.')

  def get(self, timeout: float | None = None) -> Event | signal.Signals:
    """Removes and returns the next event.

    Args:
      timeout: maximum wait in seconds; None waits indefinitely.

    Raises:
      queue.Empty: after the timeout.
    """
    deadline = math.inf if timeout is None else time.monotonic() + timeout
    while not self._events:
      left = max(deadline - time.monotonic(), 0.0)
      ready = self._poll.poll(None if left == math.inf else 1000 * left)
      if ready:
        os.read(self._reader, _READ_SIZE)
      elif not left:
        raise queue.Empty
    return self._events.popleft()
