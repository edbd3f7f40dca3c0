"""Claims: who works on what, among any number of workers with one folder.

A claim is a file that only one worker can create. Its owner touches it now and
then. A claim that nobody has touched for a while, or whose owner on this
machine has died, may be taken over, again by one worker alone. This needs no
server, only a file system that all workers see and that creates and renames
files atomically.
"""

import contextlib
import json
import os
import pathlib
import secrets
import socket
import time
from typing import Any, Dict, Optional

_STALE_SECONDS = 600.0


class Claim:
  """A claim that this process owns."""

  def __init__(self, path: pathlib.Path, token: str):
    self._path = path
    self._token = token

  def touch(self) -> bool:
    """Shows that the owner lives; returns whether the claim is still its own.

    Another worker may have taken it over, if this one had stood still.
    """
    if not self._is_own():
      return False
    os.utime(self._path)
    return True

  def note(self, process_id: int) -> None:
    """Records the process that does the work, which may outlive the owner."""
    if self._is_own():
      temporary = self._path.with_name(f'{self._path.name}.{self._token}')
      temporary.write_text(_content(self._token, worker=process_id))
      os.replace(temporary, self._path)

  def release(self) -> None:
    """Gives the claim up."""
    if self._is_own():
      self._path.unlink(missing_ok=True)

  def _is_own(self) -> bool:
    return _read(self._path).get('token') == self._token


def take(
  path: pathlib.Path, *, stale_seconds: float = _STALE_SECONDS
) -> Optional[Claim]:
  """Takes a claim that is free, or whose owner is gone.

  Args:
    path: the file of the claim.
    stale_seconds: a claim that was not touched for longer is taken over.

  Returns:
    The claim; None if another worker has it.
  """
  path.parent.mkdir(parents=True, exist_ok=True)
  token = secrets.token_hex(8)
  if _create(path, token):
    return Claim(path, token)
  before = _read(path)
  if is_held(path, stale_seconds=stale_seconds) or not path.exists():
    return None
  # Several workers may find the same claim stale, but only one can create this
  # file. That one alone may replace the claim, and first looks whether it is
  # still there.
  successor = path.with_name(f'{path.name}.after-{before.get("token", "")}')
  if not _create(successor, token):
    if _age(successor) > stale_seconds:  # Its creator has died.
      successor.unlink(missing_ok=True)
    return None
  if _read(path) != before:
    successor.unlink(missing_ok=True)
    return None
  os.replace(successor, path)
  return Claim(path, token)


def is_held(
  path: pathlib.Path, *, stale_seconds: float = _STALE_SECONDS
) -> bool:
  """Returns whether there is a claim whose owner seems to live."""
  if not path.exists() or _age(path) > stale_seconds:
    return False
  content = _read(path)
  if content.get('host') != socket.gethostname():
    return True  # Also a claim that is just being written.
  return any(
    _is_alive(content[name]) for name in ('pid', 'worker') if content.get(name)
  )


def _create(path: pathlib.Path, token: str) -> bool:
  try:
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
  except FileExistsError:
    return False
  with open(descriptor, 'w') as file:
    file.write(_content(token))
  return True


def _content(token: str, worker: int = 0) -> str:
  content = {
    'host': socket.gethostname(),
    'pid': os.getpid(),
    'worker': worker,
    'time': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime()),
    'token': token,
  }
  return json.dumps(content) + '\n'


def _read(path: pathlib.Path) -> Dict[str, Any]:
  """Returns what a claim says; nothing if it is gone or not yet written."""
  with contextlib.suppress(OSError, ValueError):
    content = json.loads(path.read_text())
    if isinstance(content, dict):
      return content
  return {}


def _age(path: pathlib.Path) -> float:
  try:
    return time.time() - path.stat().st_mtime
  except FileNotFoundError:
    return 0.0


def _is_alive(process_id: int) -> bool:
  try:
    os.kill(process_id, 0)
  except ProcessLookupError:
    return False
  except PermissionError:
    pass
  # A process that has ended, and whose parent has not asked how, has a number.
  with contextlib.suppress(OSError):
    stat = pathlib.Path(f'/proc/{process_id}/stat').read_text()
    return stat.rpartition(')')[2].split()[0] != 'Z'
  return True
