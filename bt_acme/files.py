"""Writes files and directories atomically.

A file or directory is either complete or absent, even if the writer crashes. A
writer fills a temporary file or directory next to the target, syncs it to the
disk, and moves it into place with one system call. Readers therefore find
either the old or the new contents, also after the writer was killed or the
machine lost power.

A target has one writer at a time, because an attempt to write it first removes
the leftovers of interrupted attempts. Only attempts that keep them can run at
the same time.
"""

import contextlib
import ctypes
import errno
import itertools
import json
import os
import pathlib
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any, BinaryIO

PathLike = str | os.PathLike[str]

_AT_FDCWD = -100  # Relative paths refer to the working directory.
_RENAME_NOREPLACE, _RENAME_EXCHANGE = 1, 2
# Errors of kernels and file systems that do not support these.
_NO_FLAGS = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)
# Errors of file systems that cannot sync a directory.
_NO_FOLDER_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)


def write_text(path: PathLike, text: str, *, replaces: bool = True) -> None:
  """Writes a UTF-8 text file, replacing any existing one.

  Raises:
    FileExistsError: if the file exists, unless `replaces`.
    OSError: if the file cannot be written; the target is then unchanged.
  """
  with new_file(path, replaces=replaces) as file:
    file.write(text.encode())


def write_json(path: PathLike, value: Any) -> None:
  """Writes an indented JSON file, replacing any existing one.

  Raises:
    OSError: if the file cannot be written; the target is then unchanged.
  """
  write_text(path, json_text(value, indent=2) + '\n')


def json_text(value: Any, **options: Any) -> str:
  """Returns a value as JSON, in which NumPy's numbers are plain numbers."""
  return json.dumps(value, default=lambda number: number.item(), **options)


@contextlib.contextmanager
def new_file(path: PathLike, *, replaces: bool = True) -> Iterator[BinaryIO]:
  """Creates a file, replacing any existing one.

  The body of the `with` statement writes a temporary file, which replaces the
  target when the body ends. If the body raises, the target is unchanged.

  Args:
    path: the file.
    replaces: False never replaces a file, and allows several writers at a time,
      of which one succeeds. The leftovers of earlier attempts then remain.

  Yields:
    The temporary file, open for writing bytes.

  Raises:
    FileExistsError: if the file exists, unless `replaces`.
    OSError: if the file cannot be written; the target is then unchanged.
  """
  with _replacing(path, cleans=replaces) as (target, temporary):
    with open(temporary, 'xb') as file:
      yield file
      file.flush()
      os.fsync(file.fileno())
    if replaces or not _rename(temporary, target, _RENAME_NOREPLACE):
      if not replaces and os.path.lexists(target):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
      os.replace(temporary, target)


@contextlib.contextmanager
def new_folder(
  path: PathLike, *, cleans: bool = True
) -> Iterator[pathlib.Path]:
  """Creates a directory, replacing any existing one.

  The body of the `with` statement fills a temporary directory, which replaces
  the target when the body ends. If the body raises, the target is unchanged.

  On Linux, the two directories are exchanged in one step. If the kernel or the
  file system does not support that, two renames replace it. Between them the
  target is missing, and if the writer crashes there, it stays missing until the
  next attempt, which first moves the old directory back.

  Args:
    path: the directory.
    cleans: False allows several writers at a time, of which some may fail. The
      leftovers of earlier attempts then remain.

  Yields:
    The temporary directory.

  Raises:
    OSError: if the directory cannot be written; the target is then unchanged.
  """
  with _replacing(path, cleans=cleans) as (target, temporary):
    temporary.mkdir()
    yield temporary
    sync_tree(temporary)
    if os.path.lexists(target):
      _swap(temporary, target)
    else:
      os.rename(temporary, target)


def make_folder(path: PathLike) -> None:
  """Creates a directory and its parents, and syncs their names to the disk.

  Syncing a directory does not sync its own name in its parent.
  """
  folder = pathlib.Path(path).absolute()
  missing = list(
    itertools.takewhile(lambda p: not p.is_dir(), (folder, *folder.parents))
  )
  folder.mkdir(parents=True, exist_ok=True)
  # The creator of an existing directory may have been killed before its sync.
  for made in reversed(missing or [folder]):
    with contextlib.suppress(PermissionError):  # The parent may be unreadable.
      sync_folder(made.parent)


def remove_folder(path: PathLike) -> None:
  """Removes a directory atomically: it is either complete or absent.

  If the process is killed, the next write of a directory of this name removes
  the leftovers, which `is_leftover` recognizes.
  """
  folder = pathlib.Path(path)
  doomed = _new_name(folder, 'partial')
  os.rename(folder, doomed)
  shutil.rmtree(doomed)


def sync_file(path: PathLike) -> None:
  """Syncs a file to the disk."""
  with open(path, 'rb') as file:
    os.fsync(file.fileno())


def sync_tree(folder: pathlib.Path) -> None:
  """Syncs a directory and all files below it to the disk."""
  for parent, _, names in os.walk(folder, topdown=False):
    for name in names:
      sync_file(os.path.join(parent, name))
    sync_folder(parent)


def check_writable(path: PathLike) -> None:
  """Checks that a file could be created or replaced, without leaving one.

  Args:
    path: the file.

  Raises:
    OSError: if the file could not be written.
  """
  target = pathlib.Path(path).absolute()
  if target.is_dir():
    raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
  existing = next(parent for parent in target.parents if parent.exists())
  # Some directories, such as /proc, refuse files despite their permissions, and
  # the name may be too long.
  prefix = _new_name(target, 'partial').name
  tempfile.NamedTemporaryFile(dir=existing, prefix=prefix[:-8]).close()


def is_disk_full(error: OSError) -> bool:
  """Returns whether the cause of an error is a full disk or quota."""
  return error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def is_leftover(path: PathLike) -> bool:
  """Returns whether a path is a leftover of an interrupted write."""
  name = pathlib.Path(path).name
  return name.startswith('.') and ('.partial-' in name or '.old-' in name)


@contextlib.contextmanager
def _replacing(
  path: PathLike, *, cleans: bool = True
) -> Iterator[tuple[pathlib.Path, pathlib.Path]]:
  """Yields the target and a temporary path, which is removed at the end.

  The body moves the temporary file or directory to the target, or exchanges the
  names of two directories.

  Args:
    path: the target.
    cleans: whether to remove the leftovers of interrupted attempts.
  """
  target = pathlib.Path(path).resolve()  # Keeps symbolic links.
  make_folder(target.parent)
  for old in _named(target, 'old'):
    if os.path.lexists(target):
      _remove(old)
    else:
      os.rename(old, target)
  for partial in _named(target, 'partial') if cleans else ():
    _remove(partial)
  temporary = _new_name(target, 'partial')
  try:
    yield target, temporary
    sync_folder(target.parent)
  finally:
    _remove(temporary)


def _named(target: pathlib.Path, kind: str) -> list[pathlib.Path]:
  prefix = f'.{target.name}.{kind}-'
  return [p for p in target.parent.iterdir() if p.name.startswith(prefix)]


def _new_name(target: pathlib.Path, kind: str) -> pathlib.Path:
  return target.with_name(f'.{target.name}.{kind}-{secrets.token_hex(4)}')


def _swap(temporary: pathlib.Path, target: pathlib.Path) -> None:
  """Exchanges the names of two directories."""
  if _rename(temporary, target, _RENAME_EXCHANGE):
    return
  old = _new_name(target, 'old')
  os.rename(target, old)
  try:
    os.rename(temporary, target)
  except BaseException:
    os.rename(old, target)
    raise
  os.rename(old, temporary)


def _rename(one: pathlib.Path, other: pathlib.Path, flag: int) -> bool:
  """Renames a path with a flag; returns whether this is supported."""
  renameat2 = getattr(ctypes.CDLL(None, use_errno=True), 'renameat2', None)
  if renameat2 is None:
    return False
  old, new = os.fsencode(one), os.fsencode(other)
  if renameat2(_AT_FDCWD, old, _AT_FDCWD, new, ctypes.c_uint(flag)) == 0:
    return True
  number = ctypes.get_errno()
  if number in _NO_FLAGS:
    return False
  raise OSError(number, os.strerror(number), str(one), None, str(other))


def sync_folder(folder: PathLike) -> None:
  """Syncs the entries of a directory to the disk."""
  descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
  try:
    os.fsync(descriptor)
  except OSError as error:
    if error.errno not in _NO_FOLDER_SYNC:
      raise
  finally:
    os.close(descriptor)


def _remove(path: pathlib.Path) -> None:
  """Removes a file or a directory, if it exists."""
  if path.is_dir() and not path.is_symlink():
    shutil.rmtree(path)
  else:
    path.unlink(missing_ok=True)
