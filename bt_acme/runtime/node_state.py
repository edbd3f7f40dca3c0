"""The supervisor's view of one node, across all of its attempts."""

import dataclasses
import math
import signal
import time
from collections.abc import Callable

from bt_acme.runtime import events, restarts, terminal

# Restart backoff in seconds after the 1st, 2nd and every later consecutive
# failure before the first heartbeat.
_BACKOFFS = (1.0, 10.0, 60.0)


@dataclasses.dataclass(eq=False)
class NodeState:
  """The state of one node; by default one that has not been started.

  Attributes:
    title: `LABEL/INDEX`.
    label: the label, which several nodes may share.
    budget: the node's restart budget, across all programs of the run.
    timeout: its heartbeat timeout in seconds.
    clock: a function that returns seconds.
    addresses: `host:port` of each of its ports; None until it is scheduled.
    host: the machine that it is scheduled on; empty if there is only one.
    num_starts: the number of attempts so far.
    log: its log file; None if it prints to this process's output.
    ended: the exit of its latest attempt; None if that has not exited.
    has_begun: whether its latest attempt has sent a heartbeat.
    heard: the time of its latest heartbeat, by the clock; None while it is not
      watched, as before its first heartbeat.
    started: the start of its latest attempt, by the clock.
    is_late: whether the user was told that the latest attempt has not sent a
      heartbeat yet.
    due: the time of its next restart, by the clock; None if none is planned.
    killed: the time when its latest attempt was killed, by the clock; None if
      it was not, or if its exit was posted.
    hung_seconds: the heartbeat timeout for which its latest attempt was killed;
      None if it was not.
    received_sigterm: whether its latest attempt was told to stop, but not by
      the supervisor.
    has_saved: whether its latest attempt has nothing left to save.
    follows: whether its latest attempt was killed to restart with another node.
  """

  title: str
  label: str
  budget: restarts.RestartBudget
  timeout: float = math.inf
  clock: Callable[[], float] = time.monotonic
  addresses: list[str] | None = None
  host: str = ''
  num_starts: int = 0
  log: terminal.NodeLog | None = None
  ended: events.NodeExited | None = None
  has_begun: bool = False
  heard: float | None = None
  started: float = 0.0
  is_late: bool = False
  due: float | None = None
  killed: float | None = None
  hung_seconds: float | None = None
  received_sigterm: bool = False
  has_saved: bool = False
  follows: bool = False
  _false_starts: int = 0

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
    self.started = self.clock()
    self.ended, self.hung_seconds, self.due = None, None, None
    self.heard = self.killed = None
    self.has_begun = self.received_sigterm = False
    self.has_saved = self.follows = self.is_late = False

  def record_heartbeat(self) -> None:
    """Records a heartbeat of the latest attempt."""
    self.has_begun = True
    self.heard = self.clock()
    self._false_starts = 0
    self.budget.has_worked = True

  def next_backoff(self) -> float:
    """Returns the seconds to wait before the next restart.

    An attempt that failed before its first heartbeat may have lacked something
    that becomes available later.
    """
    if self.has_begun:
      return 0.0
    self._false_starts += 1
    return _BACKOFFS[min(self._false_starts, len(_BACKOFFS)) - 1]

  @property
  def failed_at_its_start(self) -> bool:
    """Whether the node exited with an error before it ever sent a heartbeat.

    A restart would only repeat such an error.
    """
    assert self.ended is not None
    return self.ended.code > 0 and not self.budget.has_worked

  def describe_failure(self) -> str:
    """Describes the failure in one line, with the last line of the error."""
    assert self.ended is not None
    how = self._how()
    lines = self.ended.traceback.splitlines()
    if self.log is not None and self.ended.code > 0:
      lines = self.log.report()
    error = f' {lines[-1].rstrip(".")}.' if lines else ''
    return f'{self.title} {how}{error}'

  def describe_end(self) -> str:
    """Describes the failure, with the path of the log and any traceback."""
    assert self.ended is not None
    how = self._how()
    lines = [self.ended.traceback] if self.ended.traceback else []
    if self.log is not None:
      how += f' Full output: {self.log.path}'
      lines += self.log.report()
    return '\n'.join([f'error: {self.title} {how}', *lines])

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

  def _how(self) -> str:
    assert self.ended is not None
    if self.hung_seconds is not None:
      return f'sent no heartbeat for {self.hung_seconds:g} s and was killed.'
    if self.received_sigterm and not self.ended.code:
      return 'was stopped by another program (SIGTERM).'
    return self.ended.reason or _describe_code(self.ended.code)


def _describe_code(code: int) -> str:
  if code == -signal.SIGKILL:
    return 'was killed (SIGKILL); the machine may be out of memory.'
  if code < 0:
    return f'was killed by {signal.Signals(-code).name}.'
  return f'failed with exit code {code}.'
