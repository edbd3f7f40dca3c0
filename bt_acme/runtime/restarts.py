"""Restart policy: which node failures a program survives, and how often.

The supervisor applies it (`Supervisor._handle_failure`).
"""

import collections
import time
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import launchpad as lp

_HOUR = 3600.0  # Seconds.


class RestartPolicy(NamedTuple):
  """The node failures from which a program recovers; by default none.

  Attributes:
    max_restarts_per_hour: the maximum number of restarts per hour, of each node
      and of the program as a whole.
    labels: the labels of nodes that restart while the others keep running, each
      with the labels of the nodes that must restart with it. Before their first
      heartbeat these nodes have nothing to lose, so a program that stops kills
      them immediately.
    next_program: makes the program to restart after any other node has failed;
      called when all nodes of the previous program have exited.
    watchdog_seconds: a node that sends no heartbeat for this long is hung.
  """

  max_restarts_per_hour: int = 0
  labels: Mapping[str, Sequence[str]] = {}
  next_program: Callable[[], lp.Program] | None = None
  watchdog_seconds: float = float('inf')


class RestartBudget:
  """Limits restarts per hour; `str()` reports how many have been used.

  Attributes:
    has_worked: whether any attempt has sent a heartbeat.
  """

  def __init__(
    self,
    max_restarts_per_hour: int,
    clock: Callable[[], float] = time.monotonic,
  ):
    """Initializes an unused budget.

    Args:
      max_restarts_per_hour: the maximum number of restarts per hour.
      clock: a function that returns seconds.
    """
    self._max_per_hour = max_restarts_per_hour
    self._clock = clock
    self.has_worked = False
    self._granted: collections.deque[float] = collections.deque()

  def acquire(self) -> bool:
    """Uses one restart; returns whether the limit allows it."""
    now = self._clock()
    while self._granted and now - self._granted[0] > _HOUR:
      self._granted.popleft()
    if len(self._granted) >= self._max_per_hour:
      return False
    self._granted.append(now)
    return True

  def __str__(self) -> str:
    return (
      f'restart {len(self._granted)} of {self._max_per_hour} allowed per hour'
    )
