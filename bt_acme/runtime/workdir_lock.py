"""One run at a time in a workdir.

A run holds the kernel's lock (`flock`) on a file of its workdir as long as it
lives, and writes into the file who it is. The kernel gives the lock back at
whatever moment the process dies, so that nobody has to judge whether it lives:
a file that is left on this host with no lock on it belongs to a process that is
dead, and the next run takes it over.

Other hosts that share the folder may not see the lock. There, what the file
says decides, and only the user can tell that the process there is gone.
"""

import contextlib
import datetime
import errno
import fcntl
import json
import os
import pathlib
import socket
from typing import Any, Dict, Iterator

from bt_acme import files, untrusted

FILE = 'run.lock'
# What file systems answer that have no such locks.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EINVAL)


@contextlib.contextmanager
def held(workdir: str) -> Iterator[None]:
  """Holds the lock of a workdir, which it makes if it is not there.

  Args:
    workdir: the folder of the run.

  Raises:
    ValueError: if another run has it, or if the folder cannot be written.
  """
  path = pathlib.Path(workdir) / FILE
  try:
    files.make_folder(path.parent)
    descriptor = _take(path, workdir)
  except OSError as error:
    raise ValueError(
      f'workdir={workdir!r} cannot be written: {error}.'
    ) from error
  try:
    yield
  finally:
    try:
      # Before the lock is given back, or the file might be the next one's.
      if _is_at(path, descriptor):
        path.unlink(missing_ok=True)
    finally:
      os.close(descriptor)


def clear(workdir: pathlib.Path) -> None:
  """Removes the file that a process on another host has left.

  It is for callers that know that the process there is gone. A lock of this
  host needs no help, and one that a process holds stays.

  Args:
    workdir: the folder of the run.
  """
  path = workdir / FILE
  if not path.exists():
    return
  descriptor = os.open(path, os.O_RDWR)
  try:
    if _lock(descriptor) and _is_at(path, descriptor):
      path.unlink()
  finally:
    os.close(descriptor)


def _take(path: pathlib.Path, workdir: str) -> int:
  """Returns the descriptor of the file, locked and with this process in it."""
  while True:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
      is_free = _lock(descriptor)
      owner = _read(descriptor)
      if not is_free or _is_elsewhere(owner):
        raise ValueError(_refusal(path, workdir, owner))
      # Its last owner may have removed the file since it was opened.
      if _is_at(path, descriptor):
        _write(descriptor)
        return descriptor
    except BaseException:
      os.close(descriptor)
      raise
    os.close(descriptor)


def _lock(descriptor: int) -> bool:
  """Locks a file; returns whether nobody else has."""
  try:
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
  except BlockingIOError:
    return False
  except OSError as error:
    if error.errno not in _NO_LOCKS:
      raise
    return not _is_alive(_read(descriptor).get('pid'))
  return True


def _is_alive(process_id: Any) -> bool:
  """Returns whether there is such a process on this host."""
  if not isinstance(process_id, int) or process_id <= 0:
    return False
  try:
    os.kill(process_id, 0)
  except PermissionError:
    return True
  except (ProcessLookupError, OverflowError):
    return False
  return True


def _is_at(path: pathlib.Path, descriptor: int) -> bool:
  """Returns whether a path still leads to the file that was opened."""
  with contextlib.suppress(FileNotFoundError):
    return os.path.samestat(os.stat(path), os.fstat(descriptor))
  return False


def _write(descriptor: int) -> None:
  """Writes down who this process is."""
  now = datetime.datetime.now(datetime.timezone.utc)
  owner = {
    'host': socket.gethostname(),
    'pid': os.getpid(),
    'since': now.isoformat(timespec='seconds'),
  }
  text = (json.dumps(owner) + '\n').encode()
  os.ftruncate(descriptor, 0)
  os.pwrite(descriptor, text, 0)
  os.fsync(descriptor)


def _read(descriptor: int) -> Dict[str, Any]:
  """Returns what the owner wrote; nothing if it died before, or has not yet."""
  with contextlib.suppress(ValueError):
    owner = untrusted.parse_json(os.pread(descriptor, 1 << 12, 0))
    if isinstance(owner, dict):
      return owner
  return {}


def _is_elsewhere(owner: Dict[str, Any]) -> bool:
  return owner.get('host', socket.gethostname()) != socket.gethostname()


def _refusal(path: pathlib.Path, workdir: str, owner: Dict[str, Any]) -> str:
  """Says who has the workdir, and what the user can do."""
  who = 'a process that is just starting'
  if owner:
    who = (
      f'process {owner.get("pid")} on {owner.get("host")}, since '
      f'{owner.get("since")}'
    )
  text = (
    f'workdir={workdir!r} is in use by {who}: stop that run, wait for its end, '
    'or choose another workdir'
  )
  if _is_elsewhere(owner):
    return f'{text}; if no such process is left there, remove {path}.'
  return f'{text}.'
