"""A file that holds a run is whole, its own, and harmless."""

import hashlib
import json
import pickle

import numpy as np
import pytest

from bt_acme.runtime import saved_run

WHOSE = {'seed': 0, 'shape': (1, 2), 'replay': {'max_replay_size': 5}}


@pytest.fixture(name='path')
def make_path(tmp_path):
  path = tmp_path / 'run'
  state = {
    'array': np.arange(1000.0),
    'scalars': (np.float32(0.1), 2**100, None, True, 'x'),
    'payloads': [b'abc' * 1000] * 3,
    'order': np.asfortranarray(np.ones([3, 4], np.uint8)),
  }
  saved_run.write(path, WHOSE, state)
  return path


def test_there_and_back(path):
  state = saved_run.read(path, WHOSE)
  np.testing.assert_array_equal(state['array'], np.arange(1000.0))
  assert state['scalars'] == (np.float32(0.1), 2**100, None, True, 'x')
  assert state['scalars'][0].dtype == np.float32
  assert state['payloads'] == [b'abc' * 1000] * 3
  # What is shared is kept once.
  assert state['payloads'][0] is state['payloads'][2]
  assert path.stat().st_size < 8_000 + 2 * 3_000 + 1_000
  state['array'][0] = 1  # It can be written to.


def test_another_run_is_refused(path):
  other = {**WHOSE, 'replay': {'max_replay_size': 6}}
  with pytest.raises(
    ValueError, match=f'{path} belongs.*max_replay_size=5 there and 6 here'
  ):
    saved_run.read(path, other)


def test_a_behavior_with_parameters_may_be_renamed(tmp_path):
  nothing, something = hashlib.sha256(b'').hexdigest(), 'ab'
  path = tmp_path / 'run'
  saved_run.write(path, {'behaviors': [['b', something], ['c', nothing]]}, 3)
  renamed = {'behaviors': [['other', something], ['c', nothing]]}
  assert saved_run.read(path, renamed) == 3
  for first, second in (
    (['b', 'cd'], ['c', nothing]),
    (['b', something], ['d', nothing]),
  ):
    with pytest.raises(ValueError, match='belongs to another run: behaviors='):
      saved_run.read(path, {'behaviors': [first, second]})


@pytest.mark.parametrize('place', [-1, -33, -500, 300])
def test_one_changed_byte_is_found(path, place):
  data = bytearray(path.read_bytes())
  data[place] ^= 1
  path.write_bytes(data)
  with pytest.raises(ValueError, match=f'{path} is incomplete or damaged'):
    saved_run.read(path, WHOSE)


@pytest.mark.parametrize('kept', [0.1, 0.5, 0.999])
def test_a_part_of_a_file_is_refused(path, kept):
  data = path.read_bytes()
  path.write_bytes(data[: int(kept * len(data))])
  with pytest.raises(ValueError, match=f'{path} is .*damaged.*start the run'):
    saved_run.read(path, WHOSE)


@pytest.mark.parametrize(
  'data', [b'', b'\x00\xff' * 99, b'[1]\n', b'{"format": "bt_acme run 0"}\n']
)
def test_foreign_files_are_refused(path, data):
  path.write_bytes(data)
  with pytest.raises(ValueError, match=f'{path} is no saved run'):
    saved_run.read(path, WHOSE)


def test_a_missing_file_is_named(path, tmp_path):
  for wrong in (tmp_path / 'nothing', tmp_path):
    with pytest.raises(ValueError, match=f'{wrong} cannot be read'):
      saved_run.read(wrong, WHOSE)
  assert path.is_file()


def forge(path, body):
  """Writes what follows the first line, with the checksum that it has."""
  header, _ = path.read_bytes().split(b'\n', 1)
  data = header + b'\n' + body
  path.write_bytes(data + hashlib.sha256(data).digest())


@pytest.mark.parametrize(
  'body',
  [
    pickle.dumps(print),
    b'',
    b'[' * 100_000 + b'\n',
    b'[]\n',
    json.dumps({'sizes': [5], 'tree': {'bytes': 0}}).encode() + b'\nabcd',
    json.dumps({'sizes': [10**13], 'tree': {'bytes': 0}}).encode() + b'\n',
    json.dumps({'sizes': [9, -5], 'tree': 0}).encode() + b'\nabcd',
    json.dumps({'sizes': 'x', 'tree': 0}).encode() + b'\n',
    json.dumps({'sizes': [4], 'tree': {'print': 0}}).encode() + b'\nabcd',
  ],
)
def test_a_forged_file_is_one_line(path, body):
  forge(path, body)
  with pytest.raises(ValueError, match=f'{path} is .*start the run') as info:
    saved_run.read(path, WHOSE)
  assert '\n' not in str(info.value) and len(str(info.value)) < 600


@pytest.mark.parametrize(
  'header',
  [
    {'format': 'bt_acme run 3', 'identity': identity}
    for identity in ([], 3, None, {'behaviors': 3}, {'behaviors': [[]]})
  ],
)
def test_a_forged_identity_is_one_line(path, header):
  path.write_bytes(json.dumps(header).encode() + b'\n')
  with pytest.raises(ValueError, match=f'{path} is no saved run'):
    saved_run.read(path, WHOSE)


def test_a_failed_write_leaves_the_old_file(path):
  before = path.read_bytes()
  with pytest.raises(ValueError, match='cannot hold a function'):
    saved_run.write(path, WHOSE, {'array': np.ones(10), 'bad': lambda: 0})
  assert path.read_bytes() == before
  assert [p.name for p in path.parent.iterdir()] == ['run']
