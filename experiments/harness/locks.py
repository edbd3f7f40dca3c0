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
from collections.abc import Callable, Iterator

from bt_acme.runtime import workdir_lock

# After this long without a touch, the owner of a lock file counts as lost.
_STALE_SECONDS = 600.0
_TOUCH_SECONDS = 30.0


@contextlib.contextmanager
def held(folder: pathlib.Path) -> Iterator[Callable[[], bool]]:
  """Holds the lock of a directory.

  Args:
    folder: the directory of the lock file.

  Yields:
    A function that refreshes the lock for other hosts. It returns False if the
    lock is lost: another worker may have taken it while this machine was
    suspended.

  Raises:
    BlockingIOError: if another worker holds the lock.
    ValueError: if the directory is not writable.
  """
  _remove_stale(folder)
  file = folder / workdir_lock.FILE
  touched = time.monotonic()

  def touch() -> bool:
    nonlocal touched
    if time.monotonic() < touched + _TOUCH_SECONDS:
      return True
    touched = time.monotonic()
    with contextlib.suppress(OSError, ValueError, KeyError):
      owner = json.loads(file.read_text())
      if (owner['host'], owner['pid']) == (socket.gethostname(), os.getpid()):
        os.utime(file)
        return True
    return False

  with contextlib.ExitStack() as stack:
    try:
      stack.enter_context(workdir_lock.held(str(folder)))
    except ValueError as error:
      if error.__cause__:
        raise
      raise BlockingIOError(str(error)) from error
    yield touch


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
