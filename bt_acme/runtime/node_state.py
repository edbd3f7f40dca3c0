"""What the supervisor knows of one node, through all of its attempts."""

import signal
import time
from typing import Callable, List, Optional

from bt_acme.runtime import events, restarts, terminal

# Seconds before a node is started anew that ended before its first sign: once,
# twice in a row, more often.
_BACKOFFS = (1.0, 10.0, 60.0)


class Node:
  """One node of the program.

  Attributes:
    title: `LABEL/INDEX`.
    label: the label that it shares with others.
    allowance: how often it may be started anew.
    addresses: `host:port` of each of its ports; None until it has a place.
    host: the machine of its place, if there are several.
    num_starts: the number of times that it was started.
    log: its log file; None if it prints to this process's output.
    ended: how its latest attempt ended; None if it has not.
    has_begun: whether its latest attempt has sent a heartbeat.
    started: when its latest attempt began, by the clock.
    is_late: whether the user knows that its latest attempt has yet to begin.
    due: when it restarts, by the clock; None if it is not going to.
    hung_seconds: how long its latest attempt sent no heartbeat, if that killed
      it.
    received_sigterm: whether its latest attempt was told to stop, but not by
      the supervisor.
    has_saved: whether its latest attempt has nothing left to save.
    follows: whether its latest attempt was ended to restart with another node.
  """

  def __init__(
    self,
    title: str,
    label: str,
    record: restarts.Record,
    clock: Callable[[], float] = time.monotonic,
  ):
    """It was not started yet.

    Args:
      title: `LABEL/INDEX`.
      label: the label that it shares with others.
      record: of the run.
      clock: a function that returns seconds.
    """
    self._clock = clock
    self.title = title
    self.label = label
    self.allowance = record.for_node(title)
    self._record = record
    self._false_starts = 0
    self.addresses: Optional[List[str]] = None
    self.host = ''
    self.num_starts = 0
    self.log: Optional[terminal.NodeLog] = None
    self.ended: Optional[events.NodeExited] = None
    self.has_begun = False
    self.started = 0.0
    self.is_late = False
    self.due: Optional[float] = None
    self.hung_seconds: Optional[float] = None
    self.received_sigterm = False
    self.has_saved = False
    self.follows = False

  @property
  def runs(self) -> bool:
    """Whether it was started and has not ended."""
    return self.num_starts > 0 and self.ended is None

  def mark_started(self, log: Optional[terminal.NodeLog]) -> None:
    """Notes that it was started, and where its output goes."""
    if self.log is not None:
      self.log.close()
    self.num_starts += 1
    self.log = log
    self.started = self._clock()
    self.ended, self.hung_seconds, self.due = None, None, None
    self.has_begun = self.received_sigterm = False
    self.has_saved = self.follows = self.is_late = False

  def record_heartbeat(self) -> None:
    """Notes that its latest attempt has given a sign."""
    self.has_begun = True
    self._false_starts = 0
    self._record.has_worked.add(self.title)

  def next_backoff(self) -> float:
    """Returns how many seconds it waits before it is started anew.

    What ended before its first sign may have found something missing that will
    be there later.
    """
    if self.has_begun:
      return 0.0
    self._false_starts += 1
    return _BACKOFFS[min(self._false_starts, len(_BACKOFFS)) - 1]

  @property
  def failed_at_its_start(self) -> bool:
    """Whether an error of its own ended it before it had ever worked.

    What fails at the very start would fail again.
    """
    assert self.ended is not None
    has_worked = self.title in self._record.has_worked
    return self.ended.code > 0 and not has_worked

  def describe_failure(self) -> str:
    """Says in one line what happened, with the error's own line, if any."""
    assert self.ended is not None
    how = self._how()
    lines = self.ended.traceback.splitlines()
    if self.log is not None and self.ended.code > 0:
      lines = self.log.report()
    return f'{self.title} {how} {lines[-1]}' if lines else f'{self.title} {how}'

  def describe_end(self) -> str:
    """Says what happened, where to read on, and the traceback, if any."""
    assert self.ended is not None
    how = self._how()
    lines = [self.ended.traceback] if self.ended.traceback else []
    if self.log is not None:
      how += f' Its whole output: {self.log.path}'
      lines += self.log.report()
    return '\n'.join([f'error: {self.title} {how}', *lines])

  def describe_stop(self, grace_seconds: Optional[float]) -> str:
    """Says what went wrong after it was asked to stop; empty if nothing did.

    Args:
      grace_seconds: how many seconds it had; None if the user cut them short.
    """
    if self.runs and grace_seconds is not None and not self.has_saved:
      return (
        f'error: {self.title} did not stop within {grace_seconds:g} s and was '
        'killed: what it had yet to save is lost.'
      )
    if self.ended and self.ended.code not in (0, -signal.SIGTERM):
      return self.describe_end()
    return ''

  def _how(self) -> str:
    assert self.ended is not None
    if self.hung_seconds is not None:
      return f'sent no heartbeat for {self.hung_seconds:g} s and was killed.'
    if self.received_sigterm and not self.ended.code:
      return 'was told to stop by another program (SIGTERM), and did.'
    return self.ended.reason or _describe_code(self.ended.code)


def _describe_code(code: int) -> str:
  if code == -signal.SIGKILL:
    return 'was killed (SIGKILL): is the machine out of memory?'
  if code < 0:
    return f'died of {signal.Signals(-code).name}.'
  return f'failed with exit code {code}.'
