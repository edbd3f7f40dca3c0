"""Writes the checkpoints of a learner while it keeps learning.

The states of the learner and the replay are captured at the same moment. A
thread writes them, which takes several seconds per gigabyte.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

from absl import logging

from bt_acme import untrusted
from bt_acme.runtime import checkpoints

State = checkpoints.State


def _start_thread(work: Callable[[], None]) -> threading.Thread:
  """Starts work in a daemon thread, which ends with the process."""
  thread = threading.Thread(target=work, name='saver', daemon=True)
  thread.start()
  return thread


class Saver:
  """Writer of one checkpoint at a time.

  If the replay cannot be written in time, the checkpoint reuses the replay of
  the previous checkpoint, so that the learner's state is saved anyway.
  """

  def __init__(
    self,
    folder: str,
    take_replay: Callable[[], checkpoints.Replay | None],
    clear: Callable[[], None],
    start: Callable[[Callable[[], None]], Any] = _start_thread,
    clock: Callable[[], float] = time.monotonic,
    *,
    reuses_replay: bool = True,
  ):
    """Initializes a saver that has written nothing.

    Args:
      folder: the directory of the run's checkpoints.
      take_replay: writes the replay and returns the complete files, or raises
        OSError. Returns None if checkpoints contain no replay.
      clear: removes the files that `take_replay` has written.
      start: starts writing without waiting for it, and returns a thread or an
        object like it; or waits for it, and returns None.
      clock: a function that returns seconds.
      reuses_replay: whether a checkpoint may contain the previous replay.
    """
    self._folder = folder
    self._take_replay = take_replay
    self._clear = clear
    self._start = start
    self._clock = clock
    self._reuses_replay = reuses_replay
    self._task: Any = None
    self._begun: State | None = None  # The newest state passed to `begin`.
    # Guards the directory, which has one writer, and the attributes below.
    self._lock = threading.Lock()
    self._written: State | None = None  # The newest state on the disk.
    self._is_closed = False

  @property
  def is_idle(self) -> bool:
    """Whether no checkpoint is being written, so that `begin` may be called."""
    return self._task is None or not self._task.is_alive()

  def begin(self, state: State) -> None:
    """Starts writing a checkpoint.

    If writing fails, logs a warning and keeps the previous checkpoint. In a run
    in one process, any error but OSError is raised: it comes from `state()` of
    an environment or a behavior, and would recur in later checkpoints.
    """
    self._begun = state
    self._task = self._start(lambda: self._run(state))

  def finish(self, state: State, seconds: float | None = None) -> bool:
    """Writes the last checkpoint.

    Args:
      state: the contents of the checkpoint.
      seconds: the timeout for the replay in seconds. None does not wait for it,
        and finally removes all older replays, because the run is over.

    Returns:
      Whether the checkpoint is complete. If it is not, because `seconds` is
      None, call this method again later with the same state.

    Raises:
      OSError: if writing fails; the previous checkpoint is then unchanged. If
        `seconds` is None, the method may be called again.
    """
    deadline = None if seconds is None else self._clock() + seconds
    self._join(deadline)
    if self.is_idle and self._begun is not state:
      self.begin(state)
      self._join(deadline)
    if seconds is None and not self.is_idle:
      return False
    with self._lock:
      # A replay that completes after the timeout is ignored.
      self._is_closed = seconds is not None
      if self._written is not state:
        self._begun = None  # If this fails, the next call begins again.
        fresh = not self._reuses_replay
        self._write(state, self._take_replay() if fresh else self._newest())
      if seconds is None:
        checkpoints.prune_replays(self._folder)
    return True

  def _join(self, deadline: float | None) -> None:
    if self._task is not None and deadline is not None:
      self._task.join(max(0, deadline - self._clock()))

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
      if not (self._reuses_replay or isinstance(error, OSError)):
        raise
      logging.warning(
        'Checkpoint failed; keeping the previous one: %s',
        untrusted.one_line(error),
      )

  def _fresh_or_newest(self) -> checkpoints.Replay | None:
    """Saves the replay; if that fails, returns the newest saved one."""
    try:
      return self._take_replay()
    except OSError as error:
      if not self._reuses_replay:
        raise
      # This frees disk space for the other parts of the checkpoint.
      self._clear()
      logging.warning(
        'Replay not saved; reusing the one of the previous checkpoint: %s',
        untrusted.one_line(error),
      )
      return self._newest()

  def _newest(self) -> checkpoints.Replay | None:
    return checkpoints.newest_replay(self._folder)

  def _write(self, state: State, replay: checkpoints.Replay | None) -> None:
    checkpoints.save(self._folder, state, replay)
    self._written = self._begun = state
