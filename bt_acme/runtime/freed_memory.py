"""Keeps freed memory in this process while a run computes in it.

XLA and NumPy free the memory of each step, and by default glibc returns large
parts of it to the system, which then clears it page by page for the next step.
Processes of their own get other settings from environment variables
(`process_environments`), which glibc reads only when a process starts.
"""

import contextlib
import ctypes
from collections.abc import Iterator

# Parameters of `mallopt`, from glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4

_DURING_A_RUN = {_TRIM_THRESHOLD: -1, _MMAP_MAX: 0}  # -1 is the largest size.
# By default, glibc adapts the thresholds up to these values, but not after any
# of the settings has been changed.
_AFTERWARDS = {
  _TRIM_THRESHOLD: 64 << 20,
  _MMAP_THRESHOLD: 32 << 20,
  _MMAP_MAX: 65_536,
}


@contextlib.contextmanager
def kept() -> Iterator[None]:
  """Keeps freed memory until the end of the context; only with glibc.

  If several runs compute at the same time, the first to end returns the memory
  of all.
  """
  libc = ctypes.CDLL(None)
  if not hasattr(libc, 'mallopt') or not hasattr(libc, 'malloc_trim'):
    yield
    return
  for setting in _DURING_A_RUN.items():
    libc.mallopt(*setting)
  try:
    yield
  finally:
    for setting in _AFTERWARDS.items():
      libc.mallopt(*setting)
    libc.malloc_trim(0)
