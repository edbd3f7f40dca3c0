"""How long nodes have to stop before they are killed."""

from typing import Collection, NamedTuple

# Seconds for nodes that have nothing to save, before the program restarts.
_FLUSH_SECONDS = 1.0
# Nobody waits for the end of a program that ends by itself, and a machine with
# much else to do is slow: what has something to save gets this many times the
# usual seconds.
_FINAL_SAVE_FACTOR = 6


class ShutdownTimeouts(NamedTuple):
  """The seconds between the request to stop and SIGKILL.

  Attributes:
    seconds: the seconds of a program that is stopped.
    checked_labels: the labels of the nodes that have something to save.
  """

  seconds: float
  checked_labels: Collection[str]

  def longest(
    self, labels: Collection[str], *, finished: bool, restart: bool
  ) -> float:
    """Returns the seconds until the last of the nodes that run is killed.

    Args:
      labels: the labels of the nodes that run.
      finished: whether the program ends because it is over.
      restart: whether it restarts then.
    """
    if not labels:
      return 0.0
    if any(label in self.checked_labels for label in labels):
      return self.of_checked(finished=finished)
    return _FLUSH_SECONDS if restart else self.seconds

  def of_checked(self, *, finished: bool) -> float:
    """Returns the seconds of the nodes that have something to save.

    Args:
      finished: whether the program ends because it is over.
    """
    return _FINAL_SAVE_FACTOR * self.seconds if finished else self.seconds
