"""Shutdown timeouts: how long nodes have to stop before they are killed."""

from typing import Collection, NamedTuple

# Seconds for nodes that have nothing to save, before the program restarts.
_FLUSH_SECONDS = 1.0
# When a program completes, no user is waiting, and a busy machine is slow. So
# nodes that have something to save get this many times the usual seconds.
_FINAL_SAVE_FACTOR = 6


class ShutdownTimeouts(NamedTuple):
  """The timeouts in seconds, between the request to stop and SIGKILL.

  Attributes:
    seconds: the timeout when a program is stopped.
    checked_labels: the labels of the nodes that have something to save.
  """

  seconds: float
  checked_labels: Collection[str]

  def longest(
    self, labels: Collection[str], *, finished: bool, restart: bool
  ) -> float:
    """Returns the seconds until the last of the running nodes is killed.

    Args:
      labels: the labels of the running nodes.
      finished: whether the program has completed.
      restart: whether the program restarts afterwards.
    """
    if not labels:
      return 0.0
    if any(label in self.checked_labels for label in labels):
      return self.of_checked(finished=finished)
    return _FLUSH_SECONDS if restart else self.seconds

  def of_checked(self, *, finished: bool) -> float:
    """Returns the timeout of the nodes that have something to save.

    Args:
      finished: whether the program has completed.
    """
    return _FINAL_SAVE_FACTOR * self.seconds if finished else self.seconds
