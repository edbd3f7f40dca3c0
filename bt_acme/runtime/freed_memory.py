"""Keeps freed memory in this process while a run computes in it.

XLA and NumPy free the memory of each step, and by default glibc returns large
parts of it to the system, which then clears it page by page for the next step.
Processes of their own get other settings from environment variables
(`process_environments`), which glibc reads only when a process starts.
"""

import contextlib
import ctypes
from collections.abc import Iterator

# Parameters of `mallopt` in glibc's malloc.h, with their defaults.
_TRIM_THRESHOLD = (-1, 128 * 1024)
_MMAP_MAX = (-4, 65_536)

_NEVER = 2**31 - 1


@contextlib.contextmanager
def kept() -> Iterator[None]:
  """Keeps freed memory until the end of the context; only with glibc."""
  libc = ctypes.CDLL(None)
  if not hasattr(libc, 'mallopt') or not hasattr(libc, 'malloc_trim'):
    yield
    return
  libc.mallopt(_TRIM_THRESHOLD[0], _NEVER)
  libc.mallopt(_MMAP_MAX[0], 0)
  try:
    yield
  finally:
    for setting in (_TRIM_THRESHOLD, _MMAP_MAX):
      libc.mallopt(*setting)
    libc.malloc_trim(0)
