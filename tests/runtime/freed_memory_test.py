"""Tests that memory freed during a run stays in the process until its end."""

import sys

import pytest

from tests import python

pytestmark = pytest.mark.skipif(
  sys.platform != 'linux', reason='glibc, and the memory in /proc'
)

# The settings last until the end of a process, so that each test has its own.
_PROGRAM = """
import pathlib, resource
from concurrent import futures
import numpy as np
from bt_acme.runtime import freed_memory

def resident():
  pages = pathlib.Path('/proc/self/statm').read_text().split()[1]
  return int(pages) * 4096

def grows():
  before = resident()
  np.ones(200 << 20, np.uint8)
  return resident() - before > 100 << 20

def page_faults():
  before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
  for _ in range(20):
    np.ones(1 << 20, np.uint8)
  return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

thread = futures.ThreadPoolExecutor(1)
"""

_PROGRAMS = {
  'kept and returned': """
before = resident()
assert not grows()
with freed_memory.kept():
  assert grows()
  assert not grows()  # The second array gets the same memory.
assert resident() - before < 100 << 20
assert not grows()
np.ones(1 << 20, np.uint8)
# A small array stays. Memory of the system would take 256 faults for each.
assert page_faults() < 500
""",
  'threads': """
freed_memory.share_one_arena()
with freed_memory.kept():
  assert thread.submit(grows).result()
  assert not thread.submit(grows).result()
""",
  'a run': """
import bt_acme
from jax._src import xla_bridge

share, has_started, has_grown = freed_memory.share_one_arena, [], []

def record():  # JAX must not have started its threads yet.
  has_started.append(xla_bridge.backends_are_initialized())
  share()

def stop_at_the_second_call(values):
  has_grown.append(grows())
  return len(has_grown) == 2

freed_memory.share_one_arena = record
bt_acme.train(
  'Chain-5', preset='minigrid', max_actor_steps=40_000, progress='off',
  torso_size=8, lstm_size=8, head_size=8, batch_size=4,
  callbacks=[stop_at_the_second_call])
assert has_started == [False]
assert has_grown[0] and not has_grown[1]
assert not grows()
""",
}


@pytest.mark.parametrize('name', _PROGRAMS)
def test_memory(name, tmp_path):
  python.check('-c', _PROGRAM + _PROGRAMS[name], cwd=tmp_path)
