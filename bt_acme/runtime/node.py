"""Base class of the nodes of a run, which work in iterations.

A node depends neither on its engine nor on whether its clients are other
processes or the other nodes themselves. In its own process or thread, `run`
iterates until the node has finished or is told to stop. An engine that runs all
nodes in one thread calls `start`, `iterate`, `stop` and `close` itself.
"""

import abc
from typing import Optional

from bt_acme.runtime import context as context_lib

AT_ONCE = 0.0  # Seconds until the next iteration of a node with more to do.


class Node(abc.ABC):
  """A node, which works in iterations.

  Attributes:
    is_warm: whether the node has compiled its functions. The watchdog expects
      heartbeats from then on.
  """

  is_warm = False

  def __init__(self, context: context_lib.Context):
    """Initializes a node that has not started.

    Args:
      context: the context of the node.
    """
    self._context = context

  def start(self) -> None:  # noqa: B027
    """Prepares the iterations; called once, in the process of the node."""

  @abc.abstractmethod
  def iterate(self) -> Optional[float]:
    """Does a bounded piece of work.

    Returns:
      Seconds to wait before the next iteration; None if the node has finished.
    """

  def stop(self) -> None:  # noqa: B027
    """Saves unfinished work; called when the node is told to stop."""

  def close(self) -> None:  # noqa: B027
    """Releases resources; called last, also after an error."""

  def run(self) -> None:
    """Iterates until the node has finished or is told to stop."""
    try:
      self.start()
      pause: Optional[float] = AT_ONCE
      while pause is not None:
        if self._context.wait_for_stop(pause):
          self.stop()
          return
        pause = self.iterate()
        if self.is_warm:
          self._context.alive()
    finally:
      self.close()
