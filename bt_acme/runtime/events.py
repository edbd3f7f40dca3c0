"""The events of a running program.

Engines and signals put events into a queue; the supervisor takes them one by
one.
"""

import queue
import signal
from typing import List, NamedTuple, Union


class NodeScheduled(NamedTuple):
  """A node has been scheduled on a machine and can be started there.

  Attributes:
    title: the node's title, `LABEL/INDEX`.
    addresses: `host:port` of each port that the node listens on.
    host: the machine; empty if there is only one.
  """

  title: str
  addresses: List[str]
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


Event = Union[NodeScheduled, NodePending, Output, NodeExited]
# A signal asks the program to stop; see `interrupts.put_into`.
EventQueue = queue.SimpleQueue[Union[Event, signal.Signals]]
