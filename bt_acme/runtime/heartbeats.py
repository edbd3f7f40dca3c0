"""Signs of life: how the launcher notices that a node hangs.

A node gives a sign whenever it has got on with its work: it prints one byte,
which the supervisor takes out of its output again. Signs therefore reach the
launcher wherever a node's output does, on every engine that posts it. Another
byte says that the node was told to stop: if the launcher has not done so, the
end of that node is a death, although it ends well. A third one says that it has
saved all that it had, so that nothing is lost if it is slow to end.

The watch of a node begins with its first sign, so that a node may take as long
as it needs to compile.
"""

import math
import os
import time
from typing import Callable, Dict, FrozenSet, List, Mapping, Tuple

# This variable of a process that a supervisor has started holds the number of
# attempts that its node had before.
ATTEMPT_VARIABLE = 'BT_ACME_ATTEMPT'
OLD_ATTEMPT_VARIABLE = 'BT_ACME_LIFE'  # Also set, until the next release.
# This one holds its title, `LABEL/INDEX`, for whoever looks at processes.
TITLE_VARIABLE = 'BT_ACME_NODE'
# The characters ENQ, EOT and ACK, which no text has.
MARK, STOP_MARK, SAVED_MARK = b'\x05', b'\x04', b'\x06'
PERIOD = 1.0  # Seconds between two signs, and between two looks.
# A node that others wait for is judged before they are, because they hang with
# it. Each label has this many seconds more than the one before.
_SECONDS_AFTER_SERVERS = 4 * PERIOD


def attempt() -> int:
  """Returns the number of attempts that this process's node had before."""
  return int(os.environ.get(ATTEMPT_VARIABLE, '0'))


def is_supervised() -> bool:
  """Returns whether a supervisor hears the signs of this process."""
  return ATTEMPT_VARIABLE in os.environ


def make_heartbeat(
  clock: Callable[[], float] = time.monotonic,
) -> Callable[[], None]:
  """Returns the function that gives a sign, at most once a second.

  It does nothing in a process that no supervisor watches.

  Args:
    clock: a function that returns seconds.
  """
  if not is_supervised():
    return lambda: None
  last = -math.inf

  def give() -> None:
    nonlocal last
    if clock() - last >= PERIOD:
      last = clock()
      os.write(1, MARK)

  return give


def report_stopping() -> None:
  """Says that this process's node was told to stop, if anybody listens."""
  _say(STOP_MARK)


def report_saved() -> None:
  """Says that this process's node has nothing left to save."""
  _say(SAVED_MARK)


def _say(mark: bytes) -> None:
  if is_supervised():
    os.write(1, mark)


def split_heartbeats(data: bytes) -> Tuple[bytes, FrozenSet[bytes]]:
  """Returns what a node printed without its signs, and the signs in it."""
  marks = (MARK, STOP_MARK, SAVED_MARK)
  signs = frozenset(mark for mark in marks if mark in data)
  for mark in signs:
    data = data.replace(mark, b'')
  return data, signs


class Watchdog:
  """Knows which nodes have given no sign for too long."""

  def __init__(
    self,
    seconds: float,
    labels: Mapping[str, str],
    clock: Callable[[], float] = time.monotonic,
  ):
    """Watches nobody yet.

    Args:
      seconds: the seconds after which a node without a sign hangs.
      labels: the label of each node by its title, in the order in which nodes
        wait for each other: a node waits for those of earlier labels.
      clock: a function that returns seconds.
    """
    in_order = list(dict.fromkeys(labels.values()))
    self._limits = {
      title: seconds + in_order.index(label) * _SECONDS_AFTER_SERVERS
      for title, label in labels.items()
    }
    self._clock = clock
    self._looked = clock()
    self._heard: Dict[str, float] = {}

  def record(self, title: str) -> None:
    """Notes a sign of a node."""
    self._heard[title] = self._clock()

  def clear(self, title: str) -> None:
    """Watches a node no more until its next sign."""
    self._heard.pop(title, None)

  def expired(self) -> List[str]:
    """Returns the titles of the nodes that hang; looks once a second."""
    now = self._clock()
    gap = now - self._looked
    if gap < PERIOD:
      return []
    self._looked = now
    if gap > _SECONDS_AFTER_SERVERS:
      # This process stood still itself, and has not read what there is.
      self._heard = {title: t + gap for title, t in self._heard.items()}
    return [
      title
      for title, heard in self._heard.items()
      if now - heard > self._limits[title]
    ]
