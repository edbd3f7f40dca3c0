"""Locks that let only one worker at a time execute a run.

While a worker executes a run, the worker holds the lock of a directory in the
queue (`runtime.workdir_lock`). The kernel releases the lock when the worker
exits. The kernel cannot see the exit of a worker on another host, so each
worker also updates the modification time of its lock file periodically.
"""

import contextlib
import json
import os
import pathlib
import socket
import time

from bt_acme.runtime import workdir_lock

# After this long without a touch, the owner of a lock file counts as lost.
_STALE_SECONDS = 600.0
_TOUCH_SECONDS = 30.0


class Lock:
  """A lock held by this process."""

  def __init__(self, folder: pathlib.Path):
    """Acquires the lock.

    Args:
      folder: the directory of the lock file.

    Raises:
      BlockingIOError: if another worker holds the lock.
      ValueError: if the directory is not writable.
    """
    _remove_stale(folder)
    self._file = folder / workdir_lock.FILE
    self._held = contextlib.ExitStack()
    self._touched = time.monotonic()
    try:
      self._held.enter_context(workdir_lock.held(str(folder)))
    except ValueError as error:
      if error.__cause__:
        raise
      raise BlockingIOError(str(error)) from error

  def touch(self) -> bool:
    """Refreshes the lock for other hosts; returns False if the lock is lost.

    Another worker may have taken the lock while this machine was suspended.
    """
    if time.monotonic() < self._touched + _TOUCH_SECONDS:
      return True
    self._touched = time.monotonic()
    with contextlib.suppress(OSError, ValueError, KeyError):
      owner = json.loads(self._file.read_text())
      if (owner['host'], owner['pid']) == (socket.gethostname(), os.getpid()):
        os.utime(self._file)
        return True
    return False

  def close(self) -> None:
    """Releases the lock."""
    self._held.close()


def is_held(folder: pathlib.Path) -> bool:
  """Returns whether any process holds the lock of a directory."""
  _remove_stale(folder)
  if not (folder / workdir_lock.FILE).exists():
    return False
  try:
    with workdir_lock.held(str(folder)):
      return False
  except ValueError:
    return True


def _remove_stale(folder: pathlib.Path) -> None:
  with contextlib.suppress(OSError):
    age = time.time() - (folder / workdir_lock.FILE).stat().st_mtime
    if age > _STALE_SECONDS:
      workdir_lock.clear(folder)
