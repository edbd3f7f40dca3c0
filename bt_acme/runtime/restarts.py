"""Which deaths of nodes a program survives, and how often."""

import collections
import time
from typing import (
  Callable,
  Deque,
  Dict,
  Mapping,
  NamedTuple,
  Optional,
  Sequence,
  Set,
)

import launchpad as lp

_HOUR = 3600.0  # Seconds.


class Policy(NamedTuple):
  """Which deaths a program survives; by default none.

  Attributes:
    most: how often in an hour each node is started anew, and the program.
    labels: the labels of the nodes that are started anew while the others go
      on; by each, the labels of the nodes that have to start anew with it.
      These nodes have nothing to lose before their first sign of life: when the
      program stops they are killed without a request.
    next_program: makes the program that starts anew after another node has
      died. It is called when every node of the one before has ended.
    watchdog_seconds: a node that gives no sign of life for as long is dead.
  """

  most: int = 0
  labels: Mapping[str, Sequence[str]] = {}
  next_program: Optional[Callable[[], lp.Program]] = None
  watchdog_seconds: float = float('inf')


class Allowance:
  """Grants at most so many restarts an hour; its text tells how many."""

  def __init__(self, most: int, clock: Callable[[], float] = time.monotonic):
    """Grants nothing yet.

    Args:
      most: the number of restarts in an hour.
      clock: a function that returns seconds.
    """
    self._most = most
    self._clock = clock
    self._granted: Deque[float] = collections.deque()

  def take(self) -> bool:
    """Returns whether there may be one more restart now."""
    now = self._clock()
    while self._granted and now - self._granted[0] > _HOUR:
      self._granted.popleft()
    if len(self._granted) >= self._most:
      return False
    self._granted.append(now)
    return True

  def __str__(self) -> str:
    return f'restart {len(self._granted)} of at most {self._most} an hour'


class Record:
  """What a run keeps of its nodes when its program starts anew.

  Attributes:
    program: how often the program may start anew.
    has_worked: the titles of the nodes of which any life has given a sign.
  """

  def __init__(self, most: int):
    """Begins with nothing.

    Args:
      most: see `Policy`.
    """
    self.program = Allowance(most)
    self.has_worked: Set[str] = set()
    self._most = most
    self._nodes: Dict[str, Allowance] = {}

  def of_node(self, title: str) -> Allowance:
    """Returns how often a node may start anew."""
    return self._nodes.setdefault(title, Allowance(self._most))
