"""Locks a workdir, so that only one run uses it at a time.

A run holds a kernel lock (`flock`) on a file in its workdir and records its
process in that file. The kernel releases the lock whenever the process exits,
so an unlocked file of this host belongs to a process that has exited, and the
next run takes it over.

Other hosts that share the directory may not see the lock. There the contents of
the file decide, and only the user can know that the process has exited.
"""

import contextlib
import datetime
import errno
import fcntl
import json
import os
import pathlib
import socket
from collections.abc import Iterator
from typing import Any, BinaryIO

from bt_acme import files, untrusted

FILE = 'run.lock'
# Errors of file systems that do not support such locks.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EINVAL)


@contextlib.contextmanager
def held(workdir: str) -> Iterator[None]:
  """Holds the lock of a workdir, creating the directory if necessary.

  Args:
    workdir: the directory of the run.

  Raises:
    OSError: if the disk is full.
    ValueError: if another run holds the lock, or if the directory is not
      writable.
  """
  path = pathlib.Path(workdir) / FILE
  try:
    files.make_folder(path.parent)
    file = _take(path, workdir)
  except OSError as error:
    if files.is_disk_full(error):
      raise
    raise ValueError(
      f'workdir={workdir!r} is not writable: {error}. Correct this, or '
      'choose another workdir.'
    ) from error
  with file:
    try:
      yield
    finally:
      # After the lock is released, the file may belong to the next run.
      if _is_at(path, file):
        path.unlink(missing_ok=True)


def clear(workdir: pathlib.Path) -> None:
  """Removes a lock file left by a process on another host.

  Call this function only after that process has exited. Locks of this host need
  no clearing, and a lock that a process still holds is left alone.

  Args:
    workdir: the directory of the run.
  """
  path = workdir / FILE
  with contextlib.suppress(FileNotFoundError), path.open('rb+') as file:
    if _lock(file) and _is_at(path, file):
      path.unlink()


def _take(path: pathlib.Path, workdir: str) -> BinaryIO:
  """Locks the file for this process and returns it."""
  while True:
    with contextlib.ExitStack() as stack:
      file = stack.enter_context(path.open('ab+', buffering=0))
      is_free = _lock(file)
      owner = _read(file)
      if not is_free or _is_elsewhere(owner):
        raise ValueError(_refusal(path, workdir, owner))
      # The previous owner may have removed the file since it was opened.
      if _is_at(path, file):
        _write(file)
        stack.pop_all()
        return file


def _lock(file: BinaryIO) -> bool:
  """Locks a file; returns False if another process holds the lock."""
  try:
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except BlockingIOError:
    return False
  except OSError as error:
    if error.errno not in _NO_LOCKS:
      raise
    return not _is_alive(_read(file).get('pid'))
  return True


def _is_alive(process_id: Any) -> bool:
  """Returns whether a process with this ID runs on this host."""
  if not isinstance(process_id, int) or process_id <= 0:
    return False
  try:
    os.kill(process_id, 0)
  except PermissionError:
    return True
  except (ProcessLookupError, OverflowError):
    return False
  return True


def _is_at(path: pathlib.Path, file: BinaryIO) -> bool:
  """Returns whether a path still refers to the opened file."""
  with contextlib.suppress(FileNotFoundError):
    return os.path.samestat(os.stat(path), os.fstat(file.fileno()))
  return False


def _write(file: BinaryIO) -> None:
  """Records this process as the owner."""
  now = datetime.datetime.now(datetime.timezone.utc)
  owner = {
    'host': socket.gethostname(),
    'pid': os.getpid(),
    'since': now.isoformat(timespec='seconds'),
  }
  file.truncate(0)
  file.write((json.dumps(owner) + '\n').encode())
  os.fsync(file.fileno())


def _read(file: BinaryIO) -> dict[str, Any]:
  """Returns the recorded owner; empty if it has not been written."""
  file.seek(0)
  with contextlib.suppress(ValueError):
    owner = untrusted.parse_json(file.read(1 << 12))
    if isinstance(owner, dict):
      return owner
  return {}


def _is_elsewhere(owner: dict[str, Any]) -> bool:
  return owner.get('host', socket.gethostname()) != socket.gethostname()


def _refusal(path: pathlib.Path, workdir: str, owner: dict[str, Any]) -> str:
  """Returns an error message that names the owner and the possible fixes."""
  who = 'a process that is just starting'
  if owner:
    who = (
      f'process {owner.get("pid")} on {owner.get("host")}, since '
      f'{owner.get("since")}'
    )
  text = (
    f'workdir={workdir!r} is in use by {who}. Stop that run, wait until it '
    'ends, or choose another workdir.'
  )
  if _is_elsewhere(owner):
    return f'{text} If that process has exited, delete {path}.'
  return text
