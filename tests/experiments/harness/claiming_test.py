"""A claim has one owner, whoever tries and whoever dies."""

import concurrent.futures
import json
import os
import socket
import subprocess
import sys
import threading
import time

import pytest

from experiments.harness import claiming

_NUM = 16


def _race(path):
  """Has many try at once; returns the claims that they got."""
  barrier = threading.Barrier(_NUM)

  def take(_):
    barrier.wait()
    return claiming.take(path)

  with concurrent.futures.ThreadPoolExecutor(_NUM) as pool:
    return [claim for claim in pool.map(take, range(_NUM)) if claim]


def _dead_pid():
  process = subprocess.Popen([sys.executable, '-c', ''])
  process.wait()
  return process.pid


def _write(path, *, host='elsewhere', pid=1, worker=0, age=0.0):
  content = {'host': host, 'pid': pid, 'worker': worker, 'token': 'old'}
  path.write_text(json.dumps(content))
  os.utime(path, (time.time() - age,) * 2)


@pytest.fixture(name='path')
def _path(tmp_path):
  return tmp_path / 'run.claim'


def test_one_of_many_takes_what_is_free(path):
  claims = _race(path)
  assert len(claims) == 1
  assert claims[0].touch()
  claims[0].release()
  assert not path.exists()


@pytest.mark.parametrize('repeat', range(5))
def test_one_of_many_takes_over_what_is_stale(path, repeat):
  del repeat
  _write(path, age=601)
  claims = _race(path)
  assert len(claims) == 1
  assert claims[0].touch()
  assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_a_claim_of_another_machine_is_kept_until_it_is_stale(path):
  _write(path, pid=_dead_pid(), age=500)
  assert claiming.take(path) is None
  assert claiming.is_held(path)


def test_a_dead_owner_here_loses_it_at_once(path):
  _write(path, host=socket.gethostname(), pid=_dead_pid())
  assert not claiming.is_held(path)
  assert claiming.take(path) is not None
  assert claiming.is_held(path)


def test_a_process_that_outlives_its_owner_keeps_the_claim(path):
  with subprocess.Popen(
    [sys.executable, '-c', 'import time; time.sleep(60)']
  ) as process:
    _write(
      path,
      host=socket.gethostname(),
      pid=_dead_pid(),
      worker=process.pid,
    )
    assert claiming.take(path) is None
    process.kill()
  assert claiming.take(path) is not None


def test_an_owner_notices_that_it_was_replaced(path):
  claim = claiming.take(path)
  claim.note(os.getpid())
  assert json.loads(path.read_text())['worker'] == os.getpid()
  os.utime(path, (0, 0))
  other = claiming.take(path)
  assert other is not None
  assert not claim.touch()
  claim.release()  # It is no longer its own to give up.
  assert other.touch()


def test_a_claim_that_is_being_written_is_held(path):
  path.touch()
  assert claiming.take(path) is None
  os.utime(path, (0, 0))
  assert claiming.take(path) is not None


def test_a_taker_that_died_halfway_does_not_block_for_ever(path):
  _write(path, age=601)
  half = path.with_name('run.claim.after-old')
  half.touch()
  assert claiming.take(path) is None
  os.utime(half, (0, 0))
  assert claiming.take(path) is None  # It clears away what was left.
  assert claiming.take(path) is not None
