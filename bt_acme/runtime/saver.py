"""Writes the checkpoints of a learner while it goes on learning.

The learner's state and the replay are taken at the same moment. A thread writes
them, which takes some seconds for each gigabyte.
"""

import threading
import time
from typing import Any, Callable, Mapping, NamedTuple, Optional, Protocol

from absl import logging

from bt_acme import untrusted
from bt_acme.runtime import checkpoints


class State(NamedTuple):
  """What a checkpoint holds beside the replay.

  Attributes:
    arrays: a tree of NumPy arrays.
    values: plain values, anything that JSON can hold.
  """

  arrays: Any
  values: Mapping[str, Any]


class Task(Protocol):
  """Work that was started and ends by itself, as a `threading.Thread`."""

  def is_alive(self) -> bool: ...
  def join(self, timeout: Optional[float] = None) -> None: ...


def start_thread(work: Callable[[], None]) -> Task:
  """Does work in a thread of its own, which does not outlive the process."""
  thread = threading.Thread(target=work, name='saver', daemon=True)
  thread.start()
  return thread


class Saver:
  """Writes one checkpoint at a time.

  If the replay cannot be written, or not in time, the checkpoint has that of
  the one before, so that what was learned is saved even so.
  """

  def __init__(
    self,
    folder: str,
    take_replay: Optional[Callable[[], checkpoints.Replay]] = None,
    clear: Callable[[], None] = lambda: None,
    start: Optional[Callable[[Callable[[], None]], Task]] = start_thread,
    clock: Callable[[], float] = time.monotonic,
  ):
    """Initializes a saver that has written nothing.

    Args:
      folder: the folder of the run's checkpoints.
      take_replay: has the replay written and waits for that, or raises OSError;
        None leaves the replay out.
      clear: removes what `take_replay` has written.
      start: starts to write, and does not wait for it. With None, `begin`
        returns when the checkpoint is written, and a checkpoint without its own
        replay is not written.
      clock: a function that returns seconds.
    """
    self._folder = folder
    self._take_replay = take_replay
    self._clear = clear
    self._start = start
    self._clock = clock
    self._task: Optional[Task] = None
    # The lock guards the folder, which has one writer, and what is below it.
    self._lock = threading.Lock()
    self._written: Optional[State] = None  # The newest that is there.
    self._is_closed = False

  @property
  def is_idle(self) -> bool:
    """Whether nothing is being written, so that `begin` may be called."""
    return self._task is None or not self._task.is_alive()

  def begin(self, state: State) -> None:
    """Begins to write a checkpoint, and returns at once.

    If it cannot be written, a warning says so, and the one before stays.
    """
    assert self.is_idle
    if self._start is None:
      self._run(state)
    else:
      self._task = self._start(lambda: self._run(state))

  def finish(self, state: State, seconds: Optional[float] = None) -> None:
    """Writes the last checkpoint.

    Args:
      state: what it is to hold.
      seconds: how long it may wait for the replay; None for as long as it
        takes. Then the run is over, and no other replay stays on the disk.

    Raises:
      OSError: if it cannot be written; the one before is then as it was.
    """
    deadline = None if seconds is None else self._clock() + seconds
    self._join(deadline)
    if self.is_idle:
      self.begin(state)
      self._join(deadline)
    with self._lock:
      self._is_closed = True  # A replay that comes from now on is too late.
      if self._written is not state:
        self._write(state, self._last_replay())
      if seconds is None:
        checkpoints.prune_replays(self._folder)

  def _join(self, deadline: Optional[float]) -> None:
    if self._task is not None:
      left = None if deadline is None else max(0, deadline - self._clock())
      self._task.join(left)

  def _run(self, state: State) -> None:
    """Writes one checkpoint."""
    try:
      with self._lock:
        if self._is_closed:
          return
        checkpoints.prune_replays(self._folder)
      replay = self._fresh_or_newest()
      with self._lock:
        if not self._is_closed:
          self._write(state, replay)
          self._clear()
    except Exception as error:
      self._clear()
      logging.warning(
        'No checkpoint could be written, and the one before stays: %s',
        untrusted.one_line(error),
      )

  def _fresh_or_newest(self) -> Optional[checkpoints.Replay]:
    """Takes the replay, or that of the newest checkpoint."""
    if self._take_replay is None:
      return None
    if self._start is None:
      return self._take_replay()
    try:
      return self._take_replay()
    except OSError as error:
      # It makes room for the other parts of the checkpoint.
      self._clear()
      logging.warning(
        'The replay could not be saved, and the next checkpoint has that of '
        'the one before: %s',
        untrusted.one_line(error),
      )
    return checkpoints.newest_replay(self._folder)

  def _write(self, state: State, replay: Optional[checkpoints.Replay]) -> None:
    checkpoints.save(self._folder, *state, replay)
    self._written = state

  def _last_replay(self) -> Optional[checkpoints.Replay]:
    """Returns the replay of the last checkpoint if it has to be in time."""
    if self._start is not None or self._take_replay is None:
      return checkpoints.newest_replay(self._folder)
    return self._take_replay()
