"""Tests that untrusted behaviors are rejected in one line with little memory.

`exported_folder_test` tests accidental damage; here, the checksum is correct.
"""

import hashlib
import json
import os
import shutil
import zipfile

import numpy as np
import pytest

from bt_acme import behaviors
from tests import untrusted_test as hostile

_MB = 1 << 20


@pytest.fixture(name='folder')
def copy(exported, tmp_path):
  return shutil.copytree(exported, tmp_path / 'b')


def edit(folder, change):
  """Applies a change to the card."""
  path = folder / 'behavior.json'
  card = json.loads(path.read_text())
  change(card)
  path.write_text(json.dumps(card))


def sign(folder):
  """Writes the checksum of the parameters into the card."""
  data = (folder / 'params.npz').read_bytes()
  digest = hashlib.sha256(data).hexdigest()
  edit(folder, lambda card: card.update(params_sha256=digest))


def arrays_of(folder):
  with np.load(folder / 'params.npz') as params:
    return dict(params)


def refused(folder, message):
  with hostile.Peak() as peak:
    with pytest.raises(ValueError, match=message) as info:
      behaviors.Exported(str(folder), setting='init_from')
  text = str(info.value)
  assert text.startswith(f'init_from={str(folder)!r}')
  assert '\n' not in text and len(text) < 900
  assert peak.bytes < 64 * _MB


def test_a_decompression_bomb(folder):
  member = hostile.header((32 * _MB,)) + bytes(128 * _MB)
  hostile.write_zip(folder / 'params.npz', {'x': member}, zipfile.ZIP_DEFLATED)
  sign(folder)
  refused(
    folder,
    "params.npz contains the compressed array 'x.npy', .*. Export the behavior "
    'again',
  )


def test_a_header_for_four_terabytes(folder):
  arrays = arrays_of(folder)
  name = next(iter(arrays))
  hostile.write_zip(
    folder / 'params.npz', {name: hostile.header((10**12,)) + bytes(99)}
  )
  sign(folder)
  refused(folder, 'params.npz contains 99 bytes of values')


def test_objects(folder, tmp_path):
  evil = np.array([hostile.Evil(tmp_path / 'executed')], object)
  np.savez(folder / 'params.npz', x=evil)
  sign(folder)
  refused(folder, "params.npz contains object in 'x.npy', not numbers")
  assert not (tmp_path / 'executed').exists()


def test_a_file_of_a_terabyte(folder):
  os.truncate(folder / 'params.npz', 10**12)
  refused(folder, 'params.npz is 1,000,000,000,000 bytes; the')


@pytest.mark.parametrize('length', [0, 100, 0.5, 0.999])
def test_a_truncated_archive(folder, length):
  path = folder / 'params.npz'
  size = path.stat().st_size
  os.truncate(path, length if length >= 1 else int(length * size))
  sign(folder)
  refused(folder, 'params.npz is damaged .*. Export the behavior again')


def test_values_that_do_not_match_the_archives_checksum(folder):
  path = folder / 'params.npz'
  data = bytearray(path.read_bytes())
  data[len(data) // 3] ^= 1
  path.write_bytes(data)
  sign(folder)
  refused(folder, 'params.npz is damaged .*. Export the behavior again')


@pytest.mark.parametrize('name', ['agent', 'agent::head', '::' * 5_000, 'x::y'])
def test_names_that_no_export_has(folder, name):
  np.savez(folder / 'params.npz', **arrays_of(folder), **{name: np.zeros(1)})
  sign(folder)
  refused(folder, 'params.npz does not fit|params.npz has .* bytes')


@pytest.mark.parametrize('value', [np.nan, np.inf, -np.inf, 3e38, -2e6])
def test_absurd_parameters(folder, value):
  arrays = arrays_of(folder)
  arrays[next(iter(arrays))].flat[0] = value
  np.savez(folder / 'params.npz', **arrays)
  sign(folder)
  refused(
    folder, 'values that are not finite or exceed 1e.06 in magnitude. Train'
  )


@pytest.mark.parametrize('value', [3e38, -1.0, float('nan'), 1e400, '1e400'])
@pytest.mark.parametrize('name', ['error_count', 'distance_mean'])
def test_absurd_statistics(folder, name, value):
  edit(folder, lambda card: card['statistics'].update({name: value}))
  refused(folder, f'behavior.json is damaged .*{name}=')


@pytest.mark.parametrize(
  'text', ['[' * 100_000, '{"format": 1, "x": "' + 'y' * 2 * _MB + '"}', '3']
)
def test_absurd_cards(folder, text):
  (folder / 'behavior.json').write_text(text)
  refused(folder, 'behavior.json is damaged .*. Export the behavior again')


@pytest.mark.parametrize(
  'part, name, value',
  [
    ('network', 'lstm_size', 10**30),
    ('network', 'lstm_size', 10**9),
    ('network', 'lstm_size', -1),
    ('network', 'lstm_size', float('nan')),
    ('network', 'torso_size', '9' * 30),
    ('learner', 'learning_rate', float('nan')),
    ('learner', 'learning_rate', float('inf')),
    ('learner', 'y' * 100_000, 1),
  ],
)
def test_absurd_settings(folder, part, name, value):
  edit(folder, lambda card: card['config'][part].update({name: value}))
  refused(folder, 'behavior.json')


@pytest.mark.parametrize(
  'name, value',
  [
    ('observation_shape', [10**9, 10**9, 2]),
    ('observation_shape', [5, 5, -2]),
    ('observation_shape', [0, 5, 2]),
    ('observation_shape', []),
    ('observation_shape', [1e400]),
    ('num_actions', 10**12),
    ('num_actions', 0),
    ('num_actions', 3.5),
    ('num_actions', True),
    ('num_stacked', 0),
    ('num_stacked', 10**9),
    ('num_stacked', '2'),
  ],
)
def test_absurd_environments(folder, name, value):
  edit(folder, lambda card: card['environment'].update({name: value}))
  refused(folder, 'behavior.json is damaged .*. Export the behavior again')


@pytest.mark.parametrize('value', [-1, 1e400, 'x', None, [1]])
def test_absurd_steps(folder, value):
  edit(folder, lambda card: card.update(actor_steps=value))
  refused(folder, 'behavior.json is damaged .*. Export the behavior again')
