"""Only one run at a time holds a workdir, also after crashes."""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys
from unittest import mock

import pytest

from bt_acme.runtime import workdir_lock
from tests.launch import scripts

# Holds the lock until its standard input ends.
_HOLDER = """
import sys
from bt_acme.runtime import workdir_lock
with workdir_lock.held(sys.argv[1]):
  print('held', flush=True)
  sys.stdin.read()
"""


@pytest.fixture(name='workdir')
def make_workdir(tmp_path):
  return str(tmp_path / 'a' / 'run')


@pytest.fixture(name='hold')
def make_hold(workdir):
  with contextlib.ExitStack() as stack:

    def hold():
      process = subprocess.Popen(
        [sys.executable, '-c', _HOLDER, workdir],
        env=scripts.ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
      )
      stack.enter_context(process)
      stack.callback(process.kill)
      assert process.stdout.readline() == 'held\n'
      return process

    yield hold


def file_of(workdir):
  return pathlib.Path(workdir) / 'run.lock'


def take(workdir):
  """Takes and releases the lock; returns the recorded owner."""
  with workdir_lock.held(workdir):
    return json.loads(file_of(workdir).read_text())


def write(workdir, **changes):
  """Writes a lock file as an earlier process may have left it."""
  owner = {'host': socket.gethostname(), 'pid': 1, 'since': 'then', **changes}
  file_of(workdir).parent.mkdir(parents=True)
  file_of(workdir).write_text(json.dumps(owner))


def test_the_lock_file_names_its_owner_and_is_removed(workdir):
  owner = take(workdir)
  assert owner['host'] == socket.gethostname() and owner['pid'] == os.getpid()
  assert os.listdir(workdir) == []
  with pytest.raises(KeyError):
    with workdir_lock.held(workdir):
      raise KeyError
  assert os.listdir(workdir) == []


def test_another_process_gets_a_one_line_error(workdir, hold):
  process = hold()
  with pytest.raises(ValueError) as info:
    take(workdir)
  message = str(info.value)
  assert message.startswith(
    f'workdir={workdir!r} is in use by process {process.pid} on '
    f'{socket.gethostname()}, since 20'
  )
  assert message.endswith('or choose another workdir.')
  assert '\n' not in message
  process.stdin.close()
  process.wait()
  take(workdir)


def test_the_same_process_cannot_take_the_lock_twice(workdir):
  with workdir_lock.held(workdir):
    before = file_of(workdir).read_text()
    with pytest.raises(ValueError, match=f'by process {os.getpid()} on'):
      take(workdir)
    assert file_of(workdir).read_text() == before


def test_the_lock_of_a_killed_process_is_taken_over(workdir, hold):
  process = hold()
  process.kill()
  process.wait()
  assert json.loads(file_of(workdir).read_text())['pid'] == process.pid
  assert take(workdir)['pid'] == os.getpid()


# The ID may belong to another process by now.
@pytest.mark.parametrize(
  'text', ['', '{"host": "else', '[]', '\x00' * 50, '{"pid": 1}']
)
def test_an_unlocked_file_is_taken_over(workdir, text):
  write(workdir)
  file_of(workdir).write_text(text)
  take(workdir)


def test_the_error_for_another_host_names_the_file(workdir):
  write(workdir, host='elsewhere', pid=7)
  for _ in range(2):  # The file is not changed.
    with pytest.raises(ValueError) as info:
      take(workdir)
    assert 'in use by process 7 on elsewhere, since then' in str(info.value)
    assert str(info.value).endswith(f'delete {file_of(workdir)}.')
  file_of(workdir).unlink()
  take(workdir)


def test_clear_removes_the_lock_of_another_host(workdir):
  workdir_lock.clear(pathlib.Path(workdir))
  write(workdir, host='elsewhere')
  workdir_lock.clear(pathlib.Path(workdir))
  assert not file_of(workdir).exists()
  with workdir_lock.held(workdir):
    workdir_lock.clear(pathlib.Path(workdir))
    assert file_of(workdir).exists()


def test_a_deleted_lock_file_can_be_taken_again(workdir):
  """The previous owner does not remove the new owner's file."""
  with workdir_lock.held(workdir):
    file_of(workdir).unlink()
    second = workdir_lock.held(workdir)
    second.__enter__()
  assert file_of(workdir).exists()
  second.__exit__(None, None, None)
  assert os.listdir(workdir) == []


@pytest.mark.parametrize(
  'pid, is_free', [(os.getpid(), False), (2**30, True)], ids=['alive', 'dead']
)
def test_without_kernel_locks_the_process_id_decides(
  workdir, monkeypatch, pid, is_free
):
  def refuse(descriptor, operation):
    raise OSError(workdir_lock.errno.ENOLCK, 'No locks available')

  monkeypatch.setattr(workdir_lock.fcntl, 'flock', refuse)
  write(workdir, pid=pid)
  if is_free:
    take(workdir)
  else:
    with pytest.raises(ValueError, match=f'in use by process {pid}'):
      take(workdir)


def test_an_unwritable_directory(tmp_path, monkeypatch):
  (tmp_path / 'run').write_text('a file')
  for name in ('run', 'x' * 300):
    with pytest.raises(ValueError, match=f"='.*/{name}' is not writable"):
      take(str(tmp_path / name))
  full = OSError(workdir_lock.errno.ENOSPC, 'full')
  monkeypatch.setattr(workdir_lock.os, 'fsync', mock.Mock(side_effect=full))
  with pytest.raises(OSError, match='full'):
    take(str(tmp_path / 'other'))
