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


class RestartPolicy(NamedTuple):
  """Which deaths a program survives; by default none.

  Attributes:
    max_restarts_per_hour: the restarts that each node may have in an hour, and
      the program as a whole.
    labels: the labels of the nodes that are started anew while the others go
      on; by each, the labels of the nodes that have to start anew with it.
      These nodes have nothing to lose before their first heartbeat: when the
      program stops they are killed without a request.
    next_program: makes the program that starts anew after another node has
      died. It is called when every node of the one before has ended.
    watchdog_seconds: a node that sends no heartbeat for as long hangs.
  """

  max_restarts_per_hour: int = 0
  labels: Mapping[str, Sequence[str]] = {}
  next_program: Optional[Callable[[], lp.Program]] = None
  watchdog_seconds: float = float('inf')


class RestartBudget:
  """Grants at most so many restarts an hour; its text tells how many."""

  def __init__(
    self,
    max_restarts_per_hour: int,
    clock: Callable[[], float] = time.monotonic,
  ):
    """Grants nothing yet.

    Args:
      max_restarts_per_hour: the number of restarts in an hour.
      clock: a function that returns seconds.
    """
    self._max_per_hour = max_restarts_per_hour
    self._clock = clock
    self._granted: Deque[float] = collections.deque()

  def acquire(self) -> bool:
    """Returns whether there may be one more restart now."""
    now = self._clock()
    while self._granted and now - self._granted[0] > _HOUR:
      self._granted.popleft()
    if len(self._granted) >= self._max_per_hour:
      return False
    self._granted.append(now)
    return True

  def __str__(self) -> str:
    return (
      f'restart {len(self._granted)} of at most {self._max_per_hour} an hour'
    )


class Record:
  """What a run keeps of its nodes when its program starts anew.

  Attributes:
    program: how often the program may start anew.
    has_worked: the titles of the nodes of which any attempt has sent a
      heartbeat.
  """

  def __init__(
    self,
    max_restarts_per_hour: int,
    clock: Callable[[], float] = time.monotonic,
  ):
    """Begins with nothing.

    Args:
      max_restarts_per_hour: see `RestartPolicy`.
      clock: a function that returns seconds.
    """
    self.program = RestartBudget(max_restarts_per_hour, clock)
    self.has_worked: Set[str] = set()
    self._max_per_hour = max_restarts_per_hour
    self._clock = clock
    self._nodes: Dict[str, RestartBudget] = {}

  def for_node(self, title: str) -> RestartBudget:
    """Returns how often a node may start anew."""
    return self._nodes.setdefault(
      title, RestartBudget(self._max_per_hour, self._clock)
    )
