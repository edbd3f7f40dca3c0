"""Tests that memory freed during a run stays in the process until its end."""

import pathlib
import resource
import sys

import numpy as np
import pytest

from bt_acme.runtime import freed_memory

pytestmark = pytest.mark.skipif(
  sys.platform != 'linux', reason='glibc, and the memory in /proc'
)


def _resident() -> int:
  """Returns the bytes of memory that this process uses."""
  pages = int(pathlib.Path('/proc/self/statm').read_text().split()[1])
  return pages * 4096


def _grows(megabytes: int) -> bool:
  """Returns whether this process keeps the memory of an array that is freed."""
  before = _resident()
  np.ones(megabytes << 20, np.uint8)
  return _resident() - before > megabytes << 19


def test_freed_memory_is_kept_during_a_run_and_returned_after_it():
  assert not _grows(200)
  before = _resident()
  with freed_memory.kept():
    assert _grows(200)
    assert not _grows(200)  # The second array gets the same memory.
  assert _resident() - before < 100 << 20
  assert not _grows(200)


def test_small_arrays_reuse_memory_after_a_run():
  with freed_memory.kept():
    pass
  np.ones(1 << 20, np.uint8)
  before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
  for _ in range(20):
    np.ones(1 << 20, np.uint8)
  # Memory from the system would take 256 page faults for each array.
  assert resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before < 500
