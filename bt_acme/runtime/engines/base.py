"""The interface of engines, which run the nodes of a program.

An engine schedules, starts and signals nodes, and posts their events.
`runtime.supervisor` does everything else, for all engines: restarts, hung
nodes, the end of the program, tracebacks, log files, the progress line,
shutdown timeouts, Ctrl-C and exit codes.

To add an engine, write a module with a subclass of `Engine` and give it a name
in `launcher.ENGINES`.
"""

import abc
from collections.abc import Mapping
from typing import Any

import portpicker

from bt_acme.runtime import events


class Engine(abc.ABC):
  """Runs the nodes of one program; the methods do not block.

  Attributes:
    in_this_process: whether nodes are threads of this process. They then share
      its environment and its devices, and cannot be killed without ending it.
  """

  in_this_process = False

  def __init__(self, queue: events.EventQueue):
    """Initializes the engine without starting any node.

    Args:
      queue: the queue for the events of the nodes: `NodeScheduled`,
        `NodePending`, `Output` and `NodeExited`.
    """
    self._queue = queue

  def place(self, title: str, num_ports: int) -> None:
    """Schedules a node on a machine, and then posts `NodeScheduled`.

    By default this is the machine of the launcher. An engine that has to wait
    for a machine posts `NodePending` with the reason, and `NodeExited` if no
    machine will ever be available.

    Args:
      title: the node's title, `LABEL/INDEX`.
      num_ports: the number of ports that the node will listen on.
    """
    addresses = [
      f'localhost:{portpicker.pick_unused_port()}' for _ in range(num_ports)
    ]
    self._queue.put(events.NodeScheduled(title, addresses))

  @abc.abstractmethod
  def start(
    self, title: str, executable: Any, environment: Mapping[str, str]
  ) -> str | None:
    """Starts a node where it is scheduled; posts `NodeExited` when it exits.

    After that the node may be restarted, with the same executable and therefore
    the same ports, or a node without ports may be scheduled again. A start may
    come before the node is scheduled again, and then waits for that.

    Args:
      title: the node's title, `LABEL/INDEX`.
      executable: the executable of the node, from `executables.make`.
      environment: the node's environment variables in addition to those of this
        process.

    Returns:
      The started process, as 'process 123', if its output will be posted; None
      if the node prints to this process's output.
    """

  @abc.abstractmethod
  def signal(self, title: str, signum: int) -> None:
    """Sends SIGTERM, which asks a node to stop, or SIGKILL, which kills it.

    SIGKILL also kills all processes that the node has started.
    """

  @abc.abstractmethod
  def release(self, title: str) -> None:
    """Ends a running node, posts the rest of its output, and frees its slot."""

  def close(self) -> None:  # noqa: B027
    """Closes the engine after every node was released; by default a no-op."""
