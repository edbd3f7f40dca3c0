"""Virtual time, as a heap of scheduled events."""

import heapq
import itertools

_EPOCH = 1_700_000_000.0  # Seconds since 1970 at which every history starts.


class Deadlock(Exception):
  """Error: a process waits, but no event is scheduled."""


class Clock:
  """Clock that advances from one scheduled event to the next.

  Attributes:
    now: virtual seconds since the start of the history.
  """

  def __init__(self):
    self.now = 0.0
    self._heap = []
    self._numbers = itertools.count()

  def monotonic(self):
    """Returns virtual seconds, like `time.monotonic`."""
    return self.now

  def time(self):
    """Returns virtual seconds since 1970, like `time.time`."""
    return _EPOCH + self.now

  def after(self, seconds, callback):
    """Schedules a call; simultaneous calls run in the order of scheduling."""
    when = self.now + max(seconds, 0.0)
    heapq.heappush(self._heap, (when, next(self._numbers), callback))

  def step(self, deadline=float('inf')):
    """Processes the next event, if it is not later than the deadline.

    Returns:
      Whether an event was processed.

    Raises:
      Deadlock: if there is neither an event nor a deadline.
    """
    if self._heap and self._heap[0][0] <= deadline:
      self.now, _, callback = heapq.heappop(self._heap)
      callback()
      return True
    if deadline == float('inf'):
      raise Deadlock('nothing is scheduled')
    self.now = max(self.now, deadline)
    return False
