"""One worker at a time executes a run, on whatever machine it is.

A worker holds the lock of a folder of the queue (`runtime.workdir_lock`) while
it executes the run. The kernel returns the lock when the worker ends. A worker
on another host, whose end the kernel here does not see, touches the lock's file
now and then.
"""

import contextlib
import json
import os
import pathlib
import socket
import time

from bt_acme.runtime import workdir_lock

# A lock of another host that was not touched for longer was left by a worker
# that is gone.
_STALE_SECONDS = 600.0
_TOUCH_SECONDS = 30.0


class Lock:
  """A lock that this process holds."""

  def __init__(self, folder: pathlib.Path):
    """Takes the lock.

    Args:
      folder: holds the file of the lock.

    Raises:
      BlockingIOError: if another worker holds it.
      ValueError: if the folder cannot be written.
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
    """Shows other hosts that this process lives; False if the lock is lost.

    Another worker may have taken it, if this machine had stood still.
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

  def release(self) -> None:
    """Gives the lock back."""
    self._held.close()


def is_held(folder: pathlib.Path) -> bool:
  """Returns whether a process holds the lock of a folder."""
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
