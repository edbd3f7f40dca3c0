"""The saver writes checkpoints with a replay while the learner runs."""

import os
import pathlib
import threading

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


def wait(writer):
  writer._task.join(_SECONDS)
  assert writer.is_idle


def test_learning_continues_while_the_replay_is_written(source, folder):
  writer = saver.Saver(folder, source.take, source.clear)
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


def test_no_more_than_two_replays_are_on_the_disk(source, folder, tmp_path):
  writer = saver.Saver(folder, source.take, source.clear)
  for number in range(1, 5):
    source.may_write.clear()
    writer.begin(state(number))
    assert source.asked.acquire(timeout=_SECONDS)
    # The next replay is about to be written.
    assert len(replays(tmp_path)) == min(number - 1, 1)
    source.may_write.set()
    wait(writer)
    assert len(replays(tmp_path)) == min(number, 2)
  writer.finish(state(5))
  number, replay = newest(folder)
  assert number == 5 and len(replays(tmp_path)) == 1
  assert (replay.folder / 'chunks').read_text() == 'replay 5'
  # The previous checkpoint still exists.
  assert len(list(pathlib.Path(folder).iterdir())) == 2


def test_leftovers_of_a_killed_save_are_removed(source, folder, tmp_path):
  source.may_write.set()
  saver.Saver(folder, source.take, source.clear).finish(state(1))
  partial = pathlib.Path(folder) / '.checkpoint-7.partial-ab'
  (partial / 'replay').mkdir(parents=True)
  (partial / 'replay' / 'chunks').write_text('another')
  assert len(replays(tmp_path)) == 2
  source.may_write.clear()
  writer = saver.Saver(folder, source.take, source.clear)
  writer.begin(state(2))
  assert source.asked.acquire(timeout=_SECONDS)
  assert source.asked.acquire(timeout=_SECONDS)
  assert len(replays(tmp_path)) == 1 and newest(folder)[0] == 1


def test_after_a_timeout_the_previous_replay_is_reused(source, folder):
  writer = saver.Saver(folder, source.take, source.clear)
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


def test_finish_waits_for_a_running_save(source, folder):
  writer = saver.Saver(folder, source.take, source.clear)
  writer.begin(state(1))
  assert source.asked.acquire(timeout=_SECONDS)
  writer.finish(state(2), seconds=0.1)
  # There is no previous replay.
  assert newest(folder) == (2, None)
  source.may_write.set()
  wait(writer)
  assert newest(folder) == (2, None)


def test_the_learner_is_saved_even_if_the_replay_does_not_fit(
  source, folder, caplog
):
  writer = saver.Saver(folder, source.take, source.clear)
  source.may_write.set()
  writer.begin(state(1))
  wait(writer)
  source.error = OSError('No space left on device')
  writer.begin(state(2))
  wait(writer)
  number, replay = newest(folder)
  assert number == 2 and (replay.folder / 'chunks').read_text() == 'replay 1'
  assert 'Replay not saved' in caplog.text
  assert 'No space left on device' in caplog.text and source.cleared == 3


def test_a_failed_checkpoint_keeps_the_previous_one(
  source, folder, caplog, monkeypatch
):
  writer = saver.Saver(folder, source.take, source.clear)
  source.may_write.set()
  writer.begin(state(1))
  wait(writer)

  def write_array(*args, **kwargs):
    raise OSError('No space left on device')

  with monkeypatch.context() as patch:
    patch.setattr(np.lib.format, 'write_array', write_array)
    writer.begin(state(2))
    wait(writer)
    assert 'keeping the previous one: OSError: No space' in caplog.text
    assert newest(folder)[0] == 1
    # Only the final checkpoint raises an error; others may be retried.
    with pytest.raises(OSError, match='No space left'):
      writer.finish(state(3))
  number, replay = newest(folder)
  assert number == 1 and (replay.folder / 'chunks').read_text() == 'replay 1'


def test_checkpoints_without_a_replay(folder):
  writer = saver.Saver(folder)
  writer.begin(state(1))
  wait(writer)
  writer.finish(state(2), seconds=5)
  assert newest(folder) == (2, None)


def test_files_are_copied_if_they_cannot_be_linked(source, folder, monkeypatch):
  def link(source, target):
    raise PermissionError('no links here')

  monkeypatch.setattr(os, 'link', link)
  source.may_write.set()
  saver.Saver(folder, source.take, source.clear).finish(state(1))
  _, replay = newest(folder)
  assert (replay.folder / 'chunks').read_text() == 'replay 1'
