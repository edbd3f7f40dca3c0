"""A node of a run: an object that takes turns.

A node neither knows how its engine runs it, nor whether its clients are other
processes or the other nodes themselves. In a process or a thread of its own it
calls `run`, which takes turns until the node has finished or is told to stop.
An engine that runs all nodes in one thread calls `start`, `turn`, `stop` and
`close` itself.
"""

import abc
from typing import Optional

from bt_acme.runtime import context as context_lib

AT_ONCE = 0.0  # Seconds until the next turn of a node that has more to do.


class Node(abc.ABC):
  """Work that is done in turns.

  Attributes:
    is_warm: whether the node has compiled the functions that it needs. The
      watchdog expects heartbeats from then on.
  """

  is_warm = False

  def __init__(self, context: context_lib.Context):
    """Initializes a node that has not started.

    Args:
      context: the surroundings of the node.
    """
    self._context = context

  def start(self) -> None:  # noqa: B027
    """Builds what the turns need; called once, where the node runs."""

  @abc.abstractmethod
  def turn(self) -> Optional[float]:
    """Does a bounded piece of work.

    Returns:
      Seconds to wait before the next turn; None if the node has finished.
    """

  def stop(self) -> None:  # noqa: B027
    """Saves unfinished work; called if the node is told to stop."""

  def close(self) -> None:  # noqa: B027
    """Releases resources; called last, also after an error."""

  def run(self) -> None:
    """Takes turns until the node has finished or is told to stop."""
    try:
      self.start()
      pause: Optional[float] = AT_ONCE
      while pause is not None:
        if self._context.wait_for_stop(pause):
          self.stop()
          return
        pause = self.turn()
        if self.is_warm:
          self._context.alive()
    finally:
      self.close()
