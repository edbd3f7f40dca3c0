"""The interface of an engine, on which the nodes of a program run.

An engine places, starts and signals nodes, and posts what happens to them. All
else is written once in `runtime.supervisor`, for all engines: which node's exit
ends the program, which one is started anew, hangs, tracebacks, log files, the
progress line, the seconds of grace, Ctrl-C and exit codes.

To add an engine, write a module with a subclass of `Engine` and give it a name
in `launcher.ENGINES`.
"""

import abc
from typing import Any, Mapping, Optional

import portpicker

from bt_acme.runtime import events


class Engine(abc.ABC):
  """Runs the nodes of one program. Its methods do not wait.

  Attributes:
    in_this_process: whether nodes are threads of this process. They then share
      its environment and its devices, and only the end of this process can kill
      them.
  """

  in_this_process = False

  def __init__(self, queue: events.EventQueue):
    """Starts nothing yet.

    Args:
      queue: the queue that takes what happens to nodes: `NodeScheduled`,
        `NodePending`, `Output`, `NodeExited`.
    """
    self._queue = queue

  def place(self, title: str, num_ports: int) -> None:
    """Asks for a machine for a node; posts `NodeScheduled` when there is one.

    By default it is this machine. An engine that has to wait for one posts
    `NodePending` with the reason, and `NodeExited` if there will never be one.
    A node that has exited may be placed again.

    Args:
      title: the node's title, `LABEL/INDEX`.
      num_ports: the number of ports that the node will listen on.
    """
    addresses = [
      f'localhost:{portpicker.pick_unused_port()}' for _ in range(num_ports)
    ]
    self._queue.post(events.NodeScheduled(title, addresses))

  @abc.abstractmethod
  def start(
    self, title: str, executable: Any, environment: Mapping[str, str]
  ) -> Optional[str]:
    """Starts a node at its place; an `NodeExited` is posted when it ends.

    After that it may be started anew, with the same executable and therefore
    the same ports. An engine that has lost the place of a node without ports
    may find another one.

    Args:
      title: the node's title, `LABEL/INDEX`.
      executable: what `executables.make` made for the node.
      environment: variables that the node has besides those of this process.

    Returns:
      What was started, as 'process 123', if its output will be posted; None if
      it prints to this process's output itself.
    """

  @abc.abstractmethod
  def signal(self, title: str, signum: int) -> None:
    """Sends SIGTERM, which asks a node to stop, or SIGKILL, which ends it.

    SIGKILL also ends all processes that the node has started.
    """

  @abc.abstractmethod
  def release(self, title: str) -> None:
    """Ends a node if it runs, posts the rest of its output, frees its place."""

  def close(self) -> None:  # noqa: B027
    """Ends the engine itself after every node was released.

    By default there is nothing to end.
    """
