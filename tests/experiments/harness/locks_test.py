"""Tests that a lock has one owner, even after crashes."""

import concurrent.futures
import contextlib
import json
import os
import socket
import threading
import time

import pytest

from experiments.harness import locks

_NUM = 16


def _race(folder):
  """Returns the locks that simultaneous attempts acquired."""
  barrier = threading.Barrier(_NUM)

  def take(_):
    lock = contextlib.ExitStack()
    barrier.wait()
    with contextlib.suppress(BlockingIOError):
      lock.enter_context(locks.held(folder))
      return lock

  with concurrent.futures.ThreadPoolExecutor(_NUM) as pool:
    return [lock for lock in pool.map(take, range(_NUM)) if lock]


def _write(folder, *, host='elsewhere', pid=1, age=0.0):
  folder.mkdir()
  path = folder / 'run.lock'
  path.write_text(json.dumps({'host': host, 'pid': pid}))
  os.utime(path, (time.time() - age,) * 2)


@pytest.fixture(name='folder')
def _folder(tmp_path):
  return tmp_path / 'lock'


@pytest.mark.parametrize('is_lost', [False, True])
def test_only_one_of_many_acquires_a_free_lock_or_that_of_a_lost_host(
  folder, is_lost
):
  if is_lost:
    _write(folder, age=601)
  assert not locks.is_held(folder)
  (lock,) = _race(folder)
  assert locks.is_held(folder)
  lock.close()
  assert not locks.is_held(folder)


def test_the_lock_of_another_host_is_respected_until_it_is_stale(folder):
  _write(folder, age=500)
  assert locks.is_held(folder)
  with pytest.raises(BlockingIOError, match='elsewhere'), locks.held(folder):
    pass


def test_a_crashed_local_owner_loses_its_lock_immediately(folder):
  _write(folder, host=socket.gethostname())  # Unlocked by the kernel.
  assert not locks.is_held(folder)
  with locks.held(folder):
    pass


def test_an_owner_notices_that_its_lock_was_replaced(folder, monkeypatch):
  monkeypatch.setattr(locks, '_TOUCH_SECONDS', 0.0)
  path = folder / 'run.lock'
  with locks.held(folder) as touch:
    os.utime(path, (0, 0))
    assert touch() and path.stat().st_mtime > time.time() - 60
    path.unlink()
    assert not touch()
    other = {'host': f'not {socket.gethostname()}', 'pid': os.getpid()}
    path.write_text(json.dumps(other))
    assert not touch()


def test_a_directory_that_is_not_writable_is_reported(folder):
  folder.write_text('')
  with pytest.raises(ValueError, match='is not writable'), locks.held(folder):
    pass
