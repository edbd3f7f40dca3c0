"""The supervisor's view of one node, across all of its attempts."""

import collections
import dataclasses
import math
import signal

from bt_acme.runtime import events, terminal

# Restart backoff in seconds after the 1st, 2nd and every later consecutive
# failure before the first heartbeat.
_BACKOFFS = (1.0, 10.0, 60.0)
_HOUR = 3600.0  # Seconds.


class RestartBudget:
  """Limits restarts per hour; `str()` reports how many have been used.

  Attributes:
    max_per_hour: the maximum number of restarts per hour.
    has_worked: whether any attempt has sent a heartbeat.
  """

  def __init__(self, max_per_hour: int):
    self.max_per_hour = max_per_hour
    self.has_worked = False
    self._granted: collections.deque[float] = collections.deque()

  def acquire(self, now: float) -> bool:
    """Uses one restart at a time in seconds; returns whether it is allowed."""
    while self._granted and now - self._granted[0] > _HOUR:
      self._granted.popleft()
    if len(self._granted) >= self.max_per_hour:
      return False
    self._granted.append(now)
    return True

  def __str__(self) -> str:
    used = len(self._granted)
    return f'restart {used} of {self.max_per_hour} allowed per hour'


@dataclasses.dataclass(eq=False)
class NodeState:
  """The state of one node; by default one that has not been started.

  Attributes:
    title: `LABEL/INDEX`.
    budget: the node's restart budget, across all programs of the run.
    timeout: its heartbeat timeout in seconds.
    addresses: `host:port` of each of its ports; None until it is scheduled.
    host: the machine that it is scheduled on; empty if there is only one.
    num_starts: the number of attempts so far.
    log: its log file; None if it prints to this process's output.
    ended: the exit of its latest attempt; None if that has not exited.
    heard: the time of the latest heartbeat of its latest attempt, by the clock;
      None before the first one.
    late_at: when to tell the user, by the clock, that its latest attempt has
      not sent a heartbeat yet.
    due: the time of its next restart, by the clock; None if none is planned.
    killed: the time when its latest attempt was killed, by the clock; None if
      it was not. Infinite once that counts as its exit.
    why_killed: why its latest attempt was killed, as text for the user.
    received_sigterm: whether its latest attempt was told to stop, but not by
      the supervisor.
    has_saved: whether its latest attempt has nothing left to save.
    follows: whether its latest attempt was killed to restart with another node.
  """

  title: str
  budget: RestartBudget
  timeout: float = math.inf
  addresses: list[str] | None = None
  host: str = ''
  num_starts: int = 0
  log: terminal.NodeLog | None = None
  ended: events.NodeExited | None = None
  heard: float | None = None
  late_at: float = math.inf
  due: float | None = None
  killed: float | None = None
  why_killed: str = ''
  received_sigterm: bool = False
  has_saved: bool = False
  follows: bool = False
  _false_starts: int = 0

  @property
  def label(self) -> str:
    """The label, which several nodes may share."""
    return self.title.rpartition('/')[0]

  @property
  def runs(self) -> bool:
    """Whether the node has been started and has not yet exited."""
    return self.num_starts > 0 and self.ended is None

  def mark_started(self, log: terminal.NodeLog | None) -> None:
    """Records that the node was started, and its log file."""
    if self.log is not None:
      self.log.close()
    self.num_starts += 1
    self.log = log
    self.ended = self.due = self.heard = self.killed = None
    self.why_killed = ''
    self.received_sigterm = self.has_saved = self.follows = False

  def mark_exited(self, event: events.NodeExited) -> None:
    """Records the exit of the latest attempt."""
    code = event.code
    if self.received_sigterm and not code:
      code = -signal.SIGTERM
    reason = self.why_killed or event.reason
    self.ended = event._replace(code=code, reason=reason)
    self.due = None

  def record_heartbeat(self, now: float) -> None:
    """Records a heartbeat of the latest attempt at a time in seconds."""
    self.heard = now
    self._false_starts = 0
    self.budget.has_worked = True

  def next_backoff(self) -> float:
    """Returns the seconds to wait before the next restart.

    An attempt that failed before its first heartbeat may have lacked something
    that becomes available later.
    """
    if self.heard is not None:
      return 0.0
    self._false_starts += 1
    return _BACKOFFS[min(self._false_starts, len(_BACKOFFS)) - 1]

  def describe_failure(self) -> str:
    """Describes the failure in one line, with the last line of the error."""
    assert self.ended is not None
    lines = self.ended.traceback.splitlines()
    if self.log is not None and self.ended.code > 0:
      lines = self.log.report()
    error = f' {lines[-1].rstrip(".")}.' if lines else ''
    return f'{self.title} {_describe(self.ended)}{error}'

  def describe_end(self) -> str:
    """Describes the failure, with the path of the log and any traceback."""
    assert self.ended is not None
    first = f'error: {self.title} {_describe(self.ended)}'
    lines = [self.ended.traceback] if self.ended.traceback else []
    if self.log is not None:
      first += f' Full output: {self.log.path}'
      lines += self.log.report()
    return '\n'.join([first, *lines])

  def describe_stop(self, grace_seconds: float | None) -> str:
    """Describes a failure during shutdown; empty if there was none.

    Args:
      grace_seconds: the shutdown timeout in seconds; None if the user did not
        wait for it.
    """
    if self.runs and grace_seconds is not None and not self.has_saved:
      return (
        f'error: {self.title} did not stop within {grace_seconds:g} s and was '
        'killed. Its unsaved state is lost.'
      )
    if self.ended and self.ended.code not in (0, -signal.SIGTERM):
      return self.describe_end()
    return ''


def _describe(ended: events.NodeExited) -> str:
  """Describes how a node exited, as 'failed.'."""
  if ended.reason:
    return ended.reason
  if ended.code == -signal.SIGKILL:
    return 'was killed (SIGKILL); the machine may be out of memory.'
  if ended.code == -signal.SIGTERM:
    return 'was stopped by another program (SIGTERM).'
  if ended.code < 0:
    return f'was killed by {signal.Signals(-ended.code).name}.'
  return f'failed with exit code {ended.code}.'
