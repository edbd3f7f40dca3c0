"""A simulated disk that loses unsynced data, fills up, and truncates writes.

The code under test writes real files to a directory in memory. An audit hook
sees each operation before it happens, so a process can crash between any two
operations. A replacement of `os.fsync` records the synced data. After a power
failure, the directory is rebuilt: each file has its synced contents, or a part
of the later writes, and each directory has its synced names, or its current
names. A full disk is simulated by the kernel's limit for the size of files,
which also truncates writes.
"""

import contextlib
import errno
import os
import resource
import shutil
import stat
import sys
from unittest import mock

_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CHANGES = frozenset(
  ['os.mkdir', 'os.rename', 'os.remove', 'os.rmdir', 'os.truncate', 'os.link']
)
_LONGEST_CUT = 4096  # Maximum file size in bytes while the disk is full.

_active = []  # A list, because hooks cannot be removed.


class Crash(BaseException):
  """Error: the running process or the whole machine has crashed."""


class Process:
  """A process, which can crash between two operations.

  Attributes:
    name: the name of the process, for messages.
    is_dead: whether the process has ended.
    operations_left: the number of operations until the process crashes; None if
      no crash is planned.
    cuts: whether a crash truncates the last write.
    on_crash: called after a planned crash.
  """

  is_dead = cuts = False
  operations_left = None

  def __init__(self, name):
    self.name = name
    self.on_crash = lambda: None

  def operate(self):
    """Counts an operation, and crashes if none are left."""
    if self.is_dead:
      raise Crash(self.name)
    if self.operations_left is not None:
      self.operations_left -= 1
      if self.operations_left < 0:
        self.die()
        self.on_crash()
        raise Crash(self.name)

  def die(self):
    """Ends the process; a `Crash` then unwinds its running code."""
    self.is_dead = True
    self.operations_left = None


class Disk:
  """The files below one directory.

  Attributes:
    root: the directory.
    process: the running process; None for the simulation itself, whose
      operations are not counted.
    is_full: whether the disk is full.
  """

  def __init__(self, root, generator):
    self.root = root
    self.process = None
    self._prefix = str(root)
    self._random = generator
    self._contents = {}  # Synced contents by inode.
    self._listings = {}  # Synced names by inode of the directory.
    self.is_full = False
    self._last_write = None  # Path, previous size.
    self._last_writer = None
    self._limit = resource.getrlimit(resource.RLIMIT_FSIZE)

  @contextlib.contextmanager
  def installed(self):
    """Observes the operations of all processes within the block."""
    if not _hooked:
      sys.addaudithook(_hook)
      _hooked.append(True)
    self.root.mkdir(parents=True)
    _active.append(self)
    try:
      with mock.patch.object(os, 'fsync', self._fsync):
        yield
    finally:
      _active.remove(self)
      self.free()
      shutil.rmtree(self.root, ignore_errors=True)

  @contextlib.contextmanager
  def used_by(self, process):
    """Attributes all operations within the block to a process.

    The block closes what it opens, so a later crash cannot cut its last write.
    """
    before, self.process = self.process, process
    try:
      yield
    finally:
      self.process = before
      if self._last_writer is process:
        self._last_write = None

  def fill(self):
    """Leaves space for a part of a file, and for some new names."""
    self.is_full = True
    size = self._random.choice((0, self._random.randrange(_LONGEST_CUT)))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, self._limit[1]))

  def free(self):
    """Ends the shortage of disk space."""
    self.is_full = False
    resource.setrlimit(resource.RLIMIT_FSIZE, self._limit)

  def cut_last_write(self):
    """Truncates the last write, as killing the process may do."""
    if self._last_write is None:
      return
    path, before = self._last_write
    self._last_write = None
    with contextlib.suppress(OSError):
      size = os.stat(path).st_size
      if size > before:
        os.truncate(path, self._random.randrange(before, size))

  def lose_power(self):
    """Loses some or all unsynced data."""
    self.free()
    with self.used_by(None):
      current = {
        os.stat(path).st_ino: path.read_bytes()
        for path in self.root.rglob('*')
        if path.is_file()
      }
      tree = self._surviving(self.root, os.stat(self.root).st_ino)
      for path in self.root.iterdir():
        if path.is_dir():
          shutil.rmtree(path)
        else:
          path.unlink()
      synced, self._contents, self._listings = self._contents, {}, {}
      self._build(self.root, tree, current, synced, made={})

  def before(self, event, arguments):
    """Handles an audit event, which precedes its operation."""
    if self.process is None:
      return
    if event == 'open':
      path, _, flags = arguments
      name = os.fspath(path) if isinstance(path, (str, os.PathLike)) else ''
      if not (flags & _WRITE_FLAGS and name.startswith(self._prefix)):
        return
      self._operate()
      exists = os.path.exists(name)
      self._last_write = (name, os.stat(name).st_size if exists else 0)
      self._last_writer = self.process
      if not exists:
        self._take_space()
    elif event in _CHANGES:
      self._operate()
      if event == 'os.mkdir':
        self._take_space()

  def _operate(self):
    assert self.process is not None
    try:
      self.process.operate()
    except Crash:
      if self.process.cuts and self._last_writer is self.process:
        self.process.cuts = False
        with self.used_by(None):
          self.cut_last_write()
      raise
    # A write is complete once the process does another operation.
    if self._last_writer is self.process:
      self._last_write = None

  def _take_space(self):
    """Raises OSError for some of the new names on a full disk."""
    if self.is_full and self._random.random() < 0.5:
      raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

  def _fsync(self, descriptor):
    if self.process is not None:
      self._operate()
    found = os.fstat(descriptor)
    if stat.S_ISDIR(found.st_mode):
      self._listings[found.st_ino] = _listing(descriptor)
    else:
      with open(f'/proc/self/fd/{descriptor}', 'rb') as file:
        self._contents[found.st_ino] = file.read()

  def _surviving(self, folder, inode):
    """Returns the surviving names, with inodes of files and nested dicts."""
    synced = self._listings.get(inode, {})
    now = _listing(folder) if folder.is_dir() else synced
    chosen = self._random.choice((synced, now))
    return {
      name: self._surviving(folder / name, inode) if is_folder else inode
      for name, (inode, is_folder) in chosen.items()
    }

  def _build(self, folder, tree, current, synced, made):
    """Rebuilds the files, which then count as synced."""
    for name, what in tree.items():
      path = folder / name
      if isinstance(what, dict):
        path.mkdir()
        self._build(path, what, current, synced, made)
      elif what in made:
        os.link(made[what], path)
      else:
        path.write_bytes(self._content(synced.get(what), current.get(what)))
        made[what] = path
        self._contents[os.stat(path).st_ino] = path.read_bytes()
    self._listings[os.stat(folder).st_ino] = _listing(folder)

  def _content(self, synced, current):
    """Chooses the contents of a file after a power failure."""
    if current is None or current == synced:
      return synced or b''
    before = synced or b''
    # Synced data that has not been overwritten survives.
    least = len(os.path.commonprefix([before, current]))
    part = current[: self._random.randrange(least, len(current) + 1)]
    return self._random.choice((before, current, part))


_hooked = []


def _hook(event, arguments):
  if _active and (event == 'open' or event in _CHANGES):
    _active[-1].before(event, arguments)


def _listing(folder):
  """Returns the inode of each name, and whether it is a directory."""
  with os.scandir(folder) as entries:
    return {e.name: (e.inode(), e.is_dir()) for e in entries}
