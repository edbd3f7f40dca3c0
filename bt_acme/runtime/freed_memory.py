"""Keeps freed memory in this process while a run computes in it.

XLA and NumPy free the memory of each step, and by default glibc returns large
parts of it to the system, which then clears it page by page for the next step.
Processes of their own get other settings from environment variables
(`environment_variables`), which glibc reads only when a process starts.

With glibc, each thread takes memory from one of several arenas, and only the
first of them can keep large arrays. XLA's threads use it if `share_one_arena`
is called before JAX starts them.
"""

import contextlib
import ctypes
from collections.abc import Iterator, Mapping

# Parameters of `mallopt`, from glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX, _ARENA_MAX = -1, -3, -4, -8

_DURING_A_RUN = {_TRIM_THRESHOLD: -1, _MMAP_MAX: 0}  # -1 is the largest size.
# glibc adapts its thresholds only until the first setting is changed. These are
# the largest values that it would choose itself.
_AFTERWARDS = {
  _TRIM_THRESHOLD: 64 << 20,
  _MMAP_THRESHOLD: 32 << 20,
  _MMAP_MAX: 65_536,
}


def share_one_arena() -> None:
  """Lets all threads that start later use the first arena.

  This lasts until the process ends.
  """
  _change({_ARENA_MAX: 1})


@contextlib.contextmanager
def kept() -> Iterator[None]:
  """Keeps freed memory of the first arena until the end of the context.

  If several runs compute at the same time, the first to end returns the memory
  of all.
  """
  _change(_DURING_A_RUN)
  try:
    yield
  finally:
    _change(_AFTERWARDS)
    _libc('malloc_trim', 0)


def _change(settings: Mapping[int, int]) -> None:
  for setting in settings.items():
    _libc('mallopt', *setting)


def _libc(name: str, *arguments: int) -> None:
  """Calls a function of glibc; does nothing with other C libraries."""
  function = getattr(ctypes.CDLL(None), name, None)
  if function is not None:
    function(*arguments)
