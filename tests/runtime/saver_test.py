"""The saver writes checkpoints with a replay while the learner runs."""

import functools
import os
import pathlib
import threading
from unittest import mock

import numpy as np
import pytest

from bt_acme.runtime import checkpoints, saver

_SECONDS = 10  # Timeout; nothing here takes as long.


def state(number):
  return ({'n': np.full([2], number)}, {'n': number})


def newest(folder):
  """Returns the number in the newest checkpoint, and its replay."""
  arrays, values = checkpoints.restore(folder, state(0)[0])
  assert arrays['n'][0] == values['n']
  return values['n'], checkpoints.newest_replay(folder)


def replays(folder):
  """Returns the inodes of all files of replays."""
  return {os.stat(path).st_ino for path in pathlib.Path(folder).rglob('chunks')}


class Source:
  """Source of replays, which it writes once `may_write` is set."""

  def __init__(self, folder):
    self._folder = folder
    self.may_write = threading.Event()
    self.asked = threading.Semaphore(0)
    self.cleared = 0
    self.count = 0
    self.error = None

  def take(self):
    self.asked.release()
    assert self.may_write.wait(_SECONDS)
    if self.error is not None:
      raise self.error
    self.count += 1
    folder = self._folder / str(self.count)
    folder.mkdir(parents=True)
    (folder / 'chunks').write_text(f'replay {self.count}')
    return checkpoints.Replay(folder, {'chunks': str(self.count)}, {})

  def clear(self):
    self.cleared += 1
    for path in self._folder.glob('*/chunks'):
      path.unlink()


@pytest.fixture(name='source')
def make_source(tmp_path):
  source = Source(tmp_path / 'scratch')
  yield source
  source.may_write.set()


@pytest.fixture(name='folder')
def make_folder(tmp_path):
  return str(tmp_path / 'checkpoints')


@pytest.fixture(name='writer')
def make_writer(source, folder):
  return saver.Saver(folder, source.take, source.clear)


def wait(writer):
  writer._task.join(_SECONDS)
  assert writer.is_idle


def finish(writer, last):
  """Finishes a run."""
  while not writer.finish(last):
    wait(writer)


def test_learning_continues_while_the_replay_is_written(writer, source, folder):
  assert writer.is_idle
  writer.begin(state(1))
  assert source.asked.acquire(timeout=_SECONDS)
  assert not writer.is_idle and not os.path.exists(folder)
  source.may_write.set()
  wait(writer)
  number, replay = newest(folder)
  assert number == 1 and (replay.folder / 'chunks').read_text() == 'replay 1'
  # The checkpoint contains the replay, so the source is cleared.
  assert source.cleared == 1 and replay.sha256 == {'chunks': '1'}


def test_no_more_than_two_replays_are_on_the_disk(
  writer, source, folder, tmp_path
):
  for number in range(1, 5):
    source.may_write.clear()
    writer.begin(state(number))
    assert source.asked.acquire(timeout=_SECONDS)
    # The next replay is about to be written.
    assert len(replays(tmp_path)) == min(number - 1, 1)
    source.may_write.set()
    wait(writer)
    assert len(replays(tmp_path)) == min(number, 2)
  source.may_write.clear()
  last = state(5)
  assert not writer.finish(last)  # It does not wait for the replay.
  source.may_write.set()
  finish(writer, last)
  number, replay = newest(folder)
  assert number == 5 and len(replays(tmp_path)) == 1
  assert (replay.folder / 'chunks').read_text() == 'replay 5'
  # The previous checkpoint still exists.
  assert len(list(pathlib.Path(folder).iterdir())) == 2


def test_after_a_timeout_the_previous_replay_is_reused(writer, source, folder):
  source.may_write.set()
  writer.begin(state(1))
  wait(writer)
  source.may_write.clear()
  writer.finish(state(2), seconds=0.1)
  number, replay = newest(folder)
  assert number == 2 and (replay.folder / 'chunks').read_text() == 'replay 1'
  source.may_write.set()
  wait(writer)
  assert newest(folder)[0] == 2 and len(os.listdir(folder)) == 2


def test_without_a_previous_replay_the_timeout_omits_it(writer, source, folder):
  writer.begin(state(1))
  assert source.asked.acquire(timeout=_SECONDS)
  writer.finish(state(2), seconds=0.1)
  source.may_write.set()
  wait(writer)
  assert newest(folder) == (2, None)


# tests/runtime/replay_checkpoints_test.py fills the disk.
def test_only_the_final_checkpoint_raises(
  writer, source, folder, caplog, monkeypatch
):
  fail = mock.Mock(side_effect=OSError('No space left on device'))
  monkeypatch.setattr(np.lib.format, 'write_array', fail)
  source.may_write.set()
  writer.begin(state(1))
  wait(writer)
  assert 'keeping the previous one: OSError: No space' in caplog.text
  last = state(2)
  with pytest.raises(OSError, match='No space left'):
    finish(writer, last)
  assert not os.listdir(folder)
  # A second attempt saves the current replay, too; a third has nothing to do.
  monkeypatch.undo()
  finish(writer, last)
  finish(writer, last)
  number, replay = newest(folder)
  assert number == 2 and (replay.folder / 'chunks').read_text() == 'replay 3'
  assert len(os.listdir(folder)) == 1


def test_without_a_replay_of_its_own_no_checkpoint_is_written(source, folder):
  make = functools.partial(
    *(saver.Saver, folder, source.take, source.clear),
    start=lambda work: work(),
    reuses_replay=False,
  )
  writer = make()
  source.may_write.set()
  writer.begin(state(1))
  source.error = OSError('No space left on device')
  writer.begin(state(2))
  assert newest(folder)[0] == 1
  with pytest.raises(OSError, match='No space left'):
    writer.finish(state(3))
  assert newest(folder)[0] == 1
  source.error = ValueError('object cannot be saved')
  with pytest.raises(ValueError, match='cannot be saved'):
    make().begin(state(4))


def test_files_are_copied_if_they_cannot_be_linked(
  writer, source, folder, monkeypatch
):
  monkeypatch.setattr(os, 'link', mock.Mock(side_effect=PermissionError))
  source.may_write.set()
  finish(writer, state(1))
  _, replay = newest(folder)
  assert (replay.folder / 'chunks').read_text() == 'replay 1'
