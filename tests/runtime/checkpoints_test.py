"""Checkpoints that are either complete or absent."""

import json
import os
import pathlib
from unittest import mock

import jax
import numpy as np
import pytest

from bt_acme.runtime import checkpoints
from tests import untrusted_test as hostile
from tests.runtime import round_trips


def tree(value, size=3):
  return {
    'w': np.full([size, 2], value, np.float32),
    'opt': (np.int32(value), [np.zeros([0, 4], np.float32)]),
  }


def names(folder):
  return sorted(path.name for path in pathlib.Path(folder).iterdir())


def assert_restored(folder, value):
  arrays, values = checkpoints.restore(folder, tree(0))
  jax.tree.map(np.testing.assert_array_equal, arrays, tree(value))
  assert isinstance(arrays['opt'], tuple) and values == {'n': [value]}


@pytest.fixture(name='folder')
def make_folder(tmp_path):
  folder = str(tmp_path / 'checkpoints')
  for value in (1, 2, 3):
    checkpoints.save(folder, (tree(value), {'n': [value]}))
  return folder


def test_the_newest_is_restored_and_the_last_two_are_kept(folder):
  assert names(folder) == ['checkpoint-2', 'checkpoint-3']
  assert_restored(folder, 3)
  for value in range(4, 12):
    checkpoints.save(folder, (tree(value), {'n': [value]}))
  assert names(folder) == ['checkpoint-10', 'checkpoint-11']
  assert_restored(folder, 11)


def test_the_actor_steps_are_0_without_a_checkpoint(tmp_path):
  folder = str(tmp_path)
  assert checkpoints.actor_steps(folder) == 0
  checkpoints.save(folder, (tree(1), {'counts': {'actor_steps': 7}}))
  assert checkpoints.actor_steps(folder) == 7


@pytest.mark.parametrize(
  'step', ['write_array', 'fsync', 'dumps', 'rename', 'rmtree']
)
def test_a_crash_while_saving_leaves_a_complete_checkpoint(
  folder, monkeypatch, step
):
  module = {
    'write_array': np.lib.format,
    'fsync': os,
    'dumps': checkpoints.json,
    'rename': os,
    'rmtree': checkpoints.shutil,
  }[step]

  with monkeypatch.context() as patch:
    patch.setattr(module, step, mock.Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
      checkpoints.save(folder, (tree(4), {'n': [4]}))
  # The new checkpoint exists once it has been renamed.
  assert_restored(folder, 4 if step == 'rmtree' else 3)
  checkpoints.prune_replays(folder)  # Removes the leftovers.
  checkpoints.save(folder, (tree(5), {'n': [5]}))
  assert_restored(folder, 5)
  assert len(names(folder)) == 2


@pytest.mark.parametrize(
  'file, damage',
  [
    ('arrays.npz', round_trips.flip),
    ('arrays.npz', pathlib.Path.unlink),
    ('values.json', lambda path: path.write_text('{"values": ')),
    ('values.json', lambda path: path.write_text('[]')),
  ],
)
def test_a_damaged_checkpoint_is_skipped_with_a_warning(
  folder, caplog, file, damage
):
  damage(pathlib.Path(folder) / 'checkpoint-3' / file)
  assert_restored(folder, 2)
  assert 'Checkpoint skipped (checkpoint-3: ' in caplog.text
  damage(pathlib.Path(folder) / 'checkpoint-2' / file)
  with pytest.raises(ValueError, match='checkpoint-3: .*; checkpoint-2: '):
    checkpoints.restore(folder, tree(0))


@pytest.mark.parametrize(
  'template',
  [
    tree(0, size=4),
    jax.tree.map(np.float32, tree(0)),
    {**tree(0), 'another': np.zeros([])},
  ],
)
def test_other_arrays_are_an_error(folder, template):
  with pytest.raises(ValueError, match='not match the configuration'):
    checkpoints.restore(folder, template)


def with_replay(**replay):
  record = json.dumps({'values': {}, 'replay': replay})
  return lambda path: (path / 'values.json').write_text(record)


# tests/untrusted_test.py forges more arrays.
@pytest.mark.parametrize(
  'forge, message',
  [
    (lambda p: os.truncate(p / 'arrays.npz', 10**12), 'arrays.npz is 1,000'),
    (lambda p: (p / 'values.json').write_text('[' * 99_999), 'too deeply'),
    (lambda p: os.truncate(p / 'values.json', 10**12), 'is longer than'),
    (lambda p: (p / 'values.json').write_text('{"values": 3}'), 'incomplete'),
    (with_replay(layout={}), 'values.json is incomplete'),
    (with_replay(layout={}, sha256={'../x': ''}), 'values.json is incomplete'),
    (with_replay(sha256={}), 'values.json is incomplete'),
  ],
)
def test_an_untrusted_checkpoint_takes_little_memory(folder, forge, message):
  forge(pathlib.Path(folder) / 'checkpoint-3')
  with hostile.one_line_error(message):
    checkpoints.read(pathlib.Path(folder) / 'checkpoint-3', tree(0))
