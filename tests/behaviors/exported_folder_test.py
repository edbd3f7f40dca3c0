"""Tests writing, checking and reading exported behaviors."""

import hashlib
import json
import shutil

import jax
import numpy as np
import pytest

from bt_acme import behaviors
from bt_acme.behaviors import exported_folder
from tests.agents import fakes


def test_export_replaces_an_existing_behavior(tmp_path):
  for seed in (1, 2):
    _, variables, _ = fakes.export_behavior(tmp_path / 'b', seed=seed)
  jax.tree.map(
    np.testing.assert_array_equal,
    behaviors.Exported(str(tmp_path / 'b')).variables,
    variables,
  )
  assert [path.name for path in tmp_path.iterdir()] == ['b']


def edit_card(folder, **changes):
  path = folder / 'behavior.json'
  path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def damage_card(folder):
  path = folder / 'behavior.json'
  path.write_text(path.read_text()[:-20])


def damage_params(folder):
  path = folder / 'params.npz'
  data = bytearray(path.read_bytes())
  data[len(data) // 2] ^= 1
  path.write_bytes(data)


def cut_params(folder):
  path = folder / 'params.npz'
  path.write_bytes(path.read_bytes()[:1000])


def edit_config(folder, group, **changes):
  config = json.loads((folder / 'behavior.json').read_text())['config']
  config[group].update(changes)
  edit_card(folder, config=config)


def edit_statistics(folder, **changes):
  path = folder / 'behavior.json'
  statistics = json.loads(path.read_text())['statistics']
  edit_card(folder, statistics={**statistics, **changes})


def become_r2d2(folder):
  config = json.loads((folder / 'behavior.json').read_text())['config']
  del config['intrinsic']
  edit_card(folder, agent='R2D2Config', config=config)


def drop_checksum(folder):
  path = folder / 'behavior.json'
  card = json.loads(path.read_text())
  del card['params_sha256']
  path.write_text(json.dumps(card))


def edit_params(folder, edit):
  """Replaces each array with `edit(name, array)`; None removes an array."""
  path = folder / 'params.npz'
  with np.load(path) as params:
    edited = {k: edit(k, v) for k, v in params.items()}
  np.savez(path, **{k: v for k, v in edited.items() if v is not None})
  checksum = hashlib.sha256(path.read_bytes()).hexdigest()
  edit_card(folder, params_sha256=checksum)


def without(part):
  return lambda f: edit_params(f, lambda k, v: None if part in k else v)


@pytest.mark.parametrize(
  'damage, message',
  [
    (lambda f: (f / 'params.npz').unlink(), 'has no params.npz'),
    (lambda f: (f / 'behavior.json').unlink(), 'has no behavior.json'),
    (damage_card, 'behavior.json is damaged'),
    (damage_params, 'params.npz is incomplete or damaged'),
    (cut_params, 'params.npz is incomplete or damaged'),
    (lambda f: edit_card(f, format=2), 'has format 2, but this version'),
    (lambda f: edit_card(f, agent='DQN'), 'behavior.json is damaged'),
    (lambda f: edit_card(f, config={'x': 1}), 'no setting named'),
    (lambda f: edit_card(f, environment={}), 'behavior.json is damaged'),
    (lambda f: edit_card(f, environment=None), 'behavior.json is damaged'),
    (lambda f: edit_card(f, statistics=[3]), 'behavior.json is damaged'),
    (lambda f: edit_card(f, statistics={}), 'behavior.json is damaged'),
    (
      lambda f: edit_statistics(f, error_mean=[1, 2]),
      r'error_mean=\[1. 2.\] must be a finite number',
    ),
    (drop_checksum, "behavior.json is damaged .*'params_sha256'"),
    (
      become_r2d2,
      'statistics must be null, because the agent has no intrinsic',
    ),
    (
      lambda f: edit_config(f, 'network', lstm_size=8),
      r'params.npz does not fit behavior.json: .*lstm/linear/w is \(36, 64\)'
      r', expected \(28, 32\).*. Export the behavior again',
    ),
    (
      lambda f: edit_config(f, 'intrinsic', embedding_size=4),
      r'intrinsic/embedding/.* is \(8,\), expected \(4,\)',
    ),
    (without('lstm'), r'agent/lstm/linear/b is None, expected \(64,\)'),
    (without('intrinsic'), r'intrinsic/.* is None, expected .*; and \d+ more'),
    (without('agent'), 'agent/head/.* is None, expected'),
    (
      lambda f: edit_params(f, lambda k, v: v.astype(np.float64)),
      'is float64, expected float32',
    ),
  ],
)
def test_a_damaged_directory_is_one_clear_error(
  exported, tmp_path, damage, message
):
  folder = shutil.copytree(exported, tmp_path / 'b')
  damage(folder)
  with pytest.raises(ValueError, match=message) as info:
    behaviors.Exported(str(folder), setting='init_from')
  assert f'init_from={str(folder)!r}' in str(info.value)


def test_a_missing_folder(tmp_path):
  with pytest.raises(ValueError, match="behavior='.*/b' has no behavior.json"):
    behaviors.Exported(str(tmp_path / 'b'))


@pytest.mark.parametrize(
  'damage', [damage_card, damage_params, cut_params, drop_checksum]
)
def test_completeness_is_checked_without_loading(exported, tmp_path, damage):
  folder = tmp_path / 'behavior'
  assert not exported_folder.is_complete(str(folder))
  shutil.copytree(exported, folder)
  assert exported_folder.is_complete(str(folder))
  damage(folder)
  assert not exported_folder.is_complete(str(folder))
