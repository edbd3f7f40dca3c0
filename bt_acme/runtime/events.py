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
  """A node has printed something.

  Attributes:
    title: the node's title, `LABEL/INDEX`.
    data: the printed bytes; they may start or end within a line.
    is_error: whether the node printed them to standard error.
  """

  title: str
  data: bytes
  is_error: bool


class Heartbeat(NamedTuple):
  """A node has sent bytes through its heartbeat pipe.

  Attributes:
    title: the node's title, `LABEL/INDEX`.
    marks: at least one of the marks that `runtime.heartbeats` defines.
  """

  title: str
  marks: bytes


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


Event = Union[NodeScheduled, NodePending, Output, Heartbeat, NodeExited]
# A signal asks the program to stop; see `interrupts.put_into`.
EventQueue = queue.SimpleQueue[Union[Event, signal.Signals]]


def from_pipe(title: str, stream: str, data: bytes) -> Event:
  """Returns the event for data from a pipe of a node's process.

  Args:
    title: the node's title, `LABEL/INDEX`.
    stream: the name of the pipe, as in `engines.node_process.follow`.
    data: the bytes read from the pipe.
  """
  if stream == 'heartbeats':
    return Heartbeat(title, data)
  return Output(title, data, stream == 'stderr')
