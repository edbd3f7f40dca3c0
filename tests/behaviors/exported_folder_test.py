"""Tests exported behaviors: writing, checking, and reading untrusted ones."""

import functools
import hashlib
import json
import os
import shutil

import chex
import numpy as np
import pytest

from bt_acme import assembly, behaviors
from bt_acme import config as config_lib
from bt_acme.behaviors import exported_folder
from tests import untrusted_test as hostile
from tests.agents import fakes
from tests.runtime import round_trips

pytestmark = pytest.mark.usefixtures('shared_functions')


@pytest.fixture(name='folder')
def copy(exported, tmp_path):
  return shutil.copytree(exported, tmp_path / 'b')


def refused(folder, message):
  """Checks that reading fails with one line and little memory."""
  with hostile.one_line_error(message, length=900) as info:
    behaviors.Exported(str(folder), setting='init_from')
  assert str(info.value).startswith(f'init_from={str(folder)!r}')


def test_export_replaces_an_existing_behavior(tmp_path):
  for seed in (1, 2):
    _, variables, _ = fakes.export_behavior(tmp_path / 'b', seed=seed)
  chex.assert_trees_all_equal(
    behaviors.Exported(str(tmp_path / 'b')).variables, variables
  )
  assert [path.name for path in tmp_path.iterdir()] == ['b']


def test_an_agent_with_behaviors_replaces_none(folder):
  config = fakes.make_config(config_lib.BTConfig)
  agent = assembly.Agent(config, fakes.SPEC, (behaviors.Uniform(),))
  with pytest.raises(ValueError, match='agent has behaviors.*Use Run.export'):
    fakes.export_agent(folder, agent)
  behaviors.Exported(str(folder))


@pytest.mark.parametrize('other', ['thesis.tex', 'checkpoints/', 'README.md'])
def test_export_deletes_nothing_else(folder, tmp_path, other):
  for kept in (tmp_path / 'mine', folder):
    kept.mkdir(exist_ok=True)
    path = kept / other
    path.mkdir() if other[-1] == '/' else path.write_text('mine')
    with pytest.raises(ValueError, match=f"contains '{other.rstrip('/')}'"):
      fakes.export_behavior(kept)
    assert path.exists()


def edit(folder, *keys, **changes):
  """Changes values of `behavior.json` below these keys; `...` removes one."""
  path = folder / 'behavior.json'
  values = json.loads(path.read_text())
  part = functools.reduce(dict.__getitem__, keys, values)
  part.update(changes)
  for name in [name for name, value in changes.items() if value is ...]:
    del part[name]
  path.write_text(json.dumps(values))


def become_r2d2(folder):
  edit(folder, 'config', intrinsic=...)
  edit(folder, agent='R2D2Config')


def drop_checksum(folder):
  edit(folder, params_sha256=...)


def damage_json(folder):
  path = folder / 'behavior.json'
  path.write_text(path.read_text()[:-20])


def damage_params(folder):
  round_trips.flip(folder / 'params.npz')


def cut_params(folder):
  os.truncate(folder / 'params.npz', 1000)


def signed(edit_file):
  """Returns a function that changes the parameters and their checksum."""

  def change(folder):
    edit_file(folder)
    data = (folder / 'params.npz').read_bytes()
    edit(folder, params_sha256=hashlib.sha256(data).hexdigest())

  return change


def edit_params(edit_one):
  """Replaces each array with `edit_one(name, array)`; None removes it."""

  def change(folder):
    path = folder / 'params.npz'
    with np.load(path) as params:
      edited = {k: edit_one(k, v) for k, v in params.items()}
    np.savez(path, **{k: v for k, v in edited.items() if v is not None})

  return signed(change)


def without(part):
  return edit_params(lambda k, v: None if part in k else v)


def with_value(value):
  return edit_params(lambda k, v: np.full_like(v, value))


_DAMAGED = 'behavior.json is missing or damaged .*. Export the behavior again'


@pytest.mark.parametrize(
  'damage, message',
  [
    (lambda f: (f / 'params.npz').unlink(), 'params.npz .*No such file'),
    (lambda f: (f / 'behavior.json').unlink(), _DAMAGED),
    (
      lambda f: (f / 'behavior.json').rename(f / 'config.json'),
      r'bt_acme.load_run\(FOLDER\).export',
    ),
    (damage_json, _DAMAGED),
    (lambda f: (f / 'behavior.json').write_text('[' * 100_000), _DAMAGED),
    (damage_params, 'params.npz is damaged: its checksum differs'),
    (lambda f: edit(f, format=2), 'format=2 cannot be read'),
    (lambda f: edit(f, agent='DQN'), _DAMAGED),
    (lambda f: edit(f, config={'x': 1}), 'no setting named'),
    (lambda f: edit(f, environment={}), _DAMAGED),
    (lambda f: edit(f, statistics={'other': 0}), _DAMAGED),
    (
      lambda f: edit(f, 'statistics', error_mean=[1, 2]),
      r'error_mean=\[1. 2.\] must be a number',
    ),
    (drop_checksum, "missing or damaged .*'params_sha256'"),
    (become_r2d2, 'statistics must be null without an intrinsic reward'),
    (
      lambda f: edit(f, 'config', 'network', lstm_size=8),
      r'params.npz contains arrays that do not match the configuration: .*'
      r'lstm/linear/w is \(36, 64\), expected \(28, 32\).*. Export the be',
    ),
    (without('lstm'), r'agent/lstm/linear/b is None, expected \(64,\)'),
    (without('intrinsic'), r'intrinsic/.* is None, expected .*; and \d+ more'),
    (
      edit_params(lambda k, v: v.astype(np.float64)),
      'is float64, expected float32',
    ),
    # Parameters with a valid checksum; `untrusted_test` has more.
    (signed(cut_params), 'params.npz is damaged .*. Export the behavior again'),
    *(
      (with_value(value), 'not finite or exceed 1e.06 in magnitude. Train')
      for value in (np.nan, np.inf, -2e6)
    ),
  ],
)
def test_a_damaged_directory_is_one_clear_error(folder, damage, message):
  damage(folder)
  refused(folder, message)


@pytest.mark.parametrize(
  'keys, name, values',
  [
    (('statistics',), 'error_count', (3e38, -1.0, np.nan, 1e400, '1e400')),
    (('config', 'network'), 'lstm_size', (10**30, 10**9, -1, np.nan, '9')),
    (('config', 'learner'), 'y' * 100_000, (1,)),
    (
      ('environment',),
      'observation_shape',
      ([10**9, 10**9, 2], [5, 5, -2], [0, 5, 2], [], [1e400]),
    ),
    (('environment',), 'num_actions', (10**12, 0, 3.5, True)),
    (('environment',), 'num_stacked', (0, 10**9, '2')),
    ((), 'actor_steps', (-1, 1e400, 'x', None, [1])),
  ],
  ids=lambda x: x if isinstance(x, str) and len(x) < 20 else '',
)
def test_absurd_values(folder, keys, name, values):
  for value in values:
    edit(folder, *keys, **{name: value})
    refused(folder, f'{name}=' if keys == ('statistics',) else 'behavior.json')


def test_missing_statistics_are_0_and_none_at_all_are_reported(folder, caplog):
  edit(folder, 'statistics', error_mean=...)
  assert behaviors.Exported(str(folder)).statistics.error_mean == 0
  assert 'no statistics' not in caplog.text
  edit(folder, statistics=None)
  assert behaviors.Exported(str(folder)).statistics is None
  assert 'no statistics of its intrinsic reward' in caplog.text


def test_a_missing_folder(tmp_path):
  # No file system has names of 5,000 bytes.
  for folder in (str(tmp_path / 'b'), 'b' * 5000):
    with pytest.raises(ValueError, match="b' is neither a directory"):
      behaviors.Exported(folder)
  with pytest.raises(ValueError, match="did you mean 'minigrid-explorer'"):
    behaviors.Exported('minigrid-explorr')


@pytest.mark.parametrize(
  'damage', [damage_json, damage_params, cut_params, drop_checksum]
)
def test_completeness_is_checked_without_loading(exported, tmp_path, damage):
  folder = tmp_path / 'behavior'
  assert not exported_folder.is_complete(str(folder))
  shutil.copytree(exported, folder)
  assert exported_folder.is_complete(str(folder))
  damage(folder)
  assert not exported_folder.is_complete(str(folder))
