"""Tests that memory freed during a run stays in the process until its end."""

import pathlib
import sys

import numpy as np
import pytest

from bt_acme.runtime import freed_memory

_BYTES = 200_000_000

pytestmark = pytest.mark.skipif(
  sys.platform != 'linux', reason='glibc, and the memory in /proc'
)


def _resident() -> int:
  """Returns the bytes of memory that this process uses."""
  pages = int(pathlib.Path('/proc/self/statm').read_text().split()[1])
  return pages * 4096


def _grows_after_use() -> bool:
  """Returns whether this process keeps the memory of an array that is freed."""
  before = _resident()
  np.ones(_BYTES, np.uint8)
  return _resident() - before > _BYTES / 2


def test_freed_memory_is_kept_during_a_run_and_returned_after_it():
  assert not _grows_after_use()
  before = _resident()
  with freed_memory.kept():
    assert _grows_after_use()
    assert not _grows_after_use()  # The second array gets the same memory.
  assert _resident() - before < _BYTES / 2
  assert not _grows_after_use()
