"""The events of a running program, in a queue that one thread waits on.

Engines and signals post events; the supervisor takes them one by one.
"""

import collections
import contextlib
import os
import selectors
import signal
import threading
import time
from typing import (
  IO,
  Any,
  Callable,
  Dict,
  List,
  NamedTuple,
  Optional,
  Tuple,
  Union,
)

_READ_SIZE = 1 << 16


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


# The supervisor handles these and `signal.Signals`.
Event = Union[NodeScheduled, NodePending, Output, Heartbeat, NodeExited]


def from_pipe(title: str, stream: str, data: bytes) -> Event:
  """Returns the event for data from a pipe of a node's process.

  Args:
    title: the node's title, `LABEL/INDEX`.
    stream: the name of the pipe, as returned by `engines.node_process.start`.
    data: the bytes read from the pipe.
  """
  if stream == 'heartbeats':
    return Heartbeat(title, data)
  return Output(title, data, stream == 'stderr')


class EventQueue:
  """A queue of events, filled by threads, file descriptors and signals.

  `get` and all callbacks run in the main thread, because Python handles signals
  only there. Other threads may only call `post`. Closing the queue restores the
  previous signal handlers.
  """

  def __init__(self) -> None:
    """Initializes the queue, and opens the pipes that wake up `get`."""
    self._events: collections.deque = collections.deque()
    self._lock = threading.Lock()
    self._closed = False
    self._on_signal: Dict[int, Callable[[], object]] = {}
    self._selector = selectors.DefaultSelector()
    self._exit_stack = contextlib.ExitStack()
    # Signals have their own pipe, so that wake-ups cannot fill it.
    signal_reader, signal_writer = self._open_pipe()
    self.watch(signal_reader, lambda: self._take_signals(signal_reader))
    wake_up_reader, self._wake_up_writer = self._open_pipe()
    self.watch(wake_up_reader, lambda: os.read(wake_up_reader, _READ_SIZE))
    # The kernel may deliver a signal to any thread, or just before `select`
    # starts to sleep. The interpreter then writes the signal's number into the
    # pipe immediately, while a Python handler would have to wait.
    previous = signal.set_wakeup_fd(signal_writer, warn_on_full_buffer=False)
    self._exit_stack.callback(signal.set_wakeup_fd, previous)

  def __enter__(self) -> 'EventQueue':
    return self

  def __exit__(self, *exc_info: Any) -> None:
    with self._lock:
      self._closed = True
    self._exit_stack.close()
    self._selector.close()

  def post(self, event: Any) -> None:
    """Adds an event from any thread; a closed queue drops the event."""
    with self._lock:
      if not self._closed:
        self._events.append(event)
        with contextlib.suppress(BlockingIOError):
          os.write(self._wake_up_writer, b'.')

  def get(self, timeout: Optional[float] = None) -> Any:
    """Removes and returns the next event, and waits for one if necessary.

    Args:
      timeout: maximum wait in seconds; None waits indefinitely.

    Returns:
      The event; None after a timeout.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    while not self._events:
      left = None if deadline is None else deadline - time.monotonic()
      ready = self._selector.select(left)
      if not ready and left is not None and left <= 0:
        return None
      for key, _ in ready:
        # An earlier callback may have ended the watch.
        if key.fd in self._selector.get_map():
          key.data()
    return self._events.popleft()

  def watch(self, descriptor: int, callback: Callable[[], object]) -> None:
    """Makes `get` call a function whenever a file descriptor is readable."""
    self._selector.register(descriptor, selectors.EVENT_READ, callback)

  def unwatch(self, descriptor: int) -> None:
    """Stops watching a file descriptor, which must still be open."""
    self._selector.unregister(descriptor)

  def on_signal(self, signum: int, callback: Callable[[], object]) -> None:
    """Makes `get` call a function after a signal, instead of its handler."""
    self._on_signal[signum] = callback
    previous = signal.signal(signum, lambda number, frame: None)
    self._exit_stack.callback(
      signal.signal, signum, signal.SIG_DFL if previous is None else previous
    )

  def _open_pipe(self) -> Tuple[int, int]:
    """Opens a pipe that is closed with the queue."""
    descriptors = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    for descriptor in descriptors:
      self._exit_stack.callback(os.close, descriptor)
    return descriptors

  def _take_signals(self, reader: int) -> None:
    """Calls the callbacks of the signals whose numbers are in the pipe."""
    for number in os.read(reader, _READ_SIZE):
      if number in self._on_signal:
        self._on_signal[number]()


class PipeReader:
  """Forwards data from a pipe while `EventQueue.get` waits."""

  def __init__(
    self,
    queue: EventQueue,
    pipe: IO[bytes],
    take: Callable[[bytes], object],
    at_end: Callable[[], object] = lambda: None,
  ):
    """Initializes the reader, which closes the pipe at the end of its data.

    Args:
      queue: the queue whose `get` reads the pipe.
      pipe: an unbuffered file.
      take: called with the bytes that were read.
      at_end: called when the last writer has closed the pipe.
    """
    self._queue, self._pipe = queue, pipe
    self._take, self._at_end = take, at_end
    os.set_blocking(pipe.fileno(), False)
    queue.watch(pipe.fileno(), self._read)

  def close(self) -> None:
    """Reads the rest of the pipe, and closes the pipe."""
    while not self._pipe.closed and self._read():
      pass
    self._end()

  def _read(self) -> bool:
    """Reads once; returns whether the pipe may contain more data."""
    try:
      data = os.read(self._pipe.fileno(), _READ_SIZE)
    except BlockingIOError:
      return False
    if data:
      self._take(data)
    else:
      self._end()
      self._at_end()
    return bool(data)

  def _end(self) -> None:
    if not self._pipe.closed:
      self._queue.unwatch(self._pipe.fileno())
      self._pipe.close()
