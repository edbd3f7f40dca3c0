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


def flip(place):
  """Changes one bit of a file."""

  def flipped(data):
    changed = bytearray(data)
    changed[place] ^= 1
    return bytes(changed)

  return flipped


def keep(share):
  return lambda data: data[: int(share * len(data))]


def forge(body):
  """Replaces what follows the first line, with the checksum that it has."""

  def forged(data):
    changed = data.split(b'\n', 1)[0] + b'\n' + body
    return changed + hashlib.sha256(changed).digest()

  return forged


def body(sizes, tree, parts=b''):
  lines = json.dumps({'sizes': sizes, 'tree': tree}).encode() + b'\n'
  return forge(lines + parts)


def header(identity):
  text = json.dumps({'format': 'bt_acme run 3', 'identity': identity})
  return lambda data: text.encode() + b'\n'


@pytest.mark.parametrize(
  'message, damages',
  [
    ('is incomplete or damaged', [flip(i) for i in (-1, -33, -500, 300)]),
    ('is .*damaged.*start the run', [keep(part) for part in (0.1, 0.5, 0.999)]),
    (
      'is no saved run',
      [
        lambda data: b'',
        lambda data: b'\x00\xff' * 99,
        lambda data: b'[1]\n',
        lambda data: b'{"format": "bt_acme run 0"}\n',
        *map(header, ([], 3, None, {'behaviors': 3}, {'behaviors': [[]]})),
      ],
    ),
    (
      'is .*start the run',
      [
        *map(
          forge, (pickle.dumps(print), b'', b'[' * 100_000 + b'\n', b'[]\n')
        ),
        body([5], {'bytes': 0}, b'abcd'),
        body([10**13], {'bytes': 0}),
        body([9, -5], 0, b'abcd'),
        body('x', 0),
        body([4], {'print': 0}, b'abcd'),
      ],
    ),
  ],
)
def test_a_damaged_or_foreign_file_is_refused_in_one_line(
  path, message, damages
):
  whole = path.read_bytes()
  for damage in damages:
    path.write_bytes(damage(whole))
    with pytest.raises(ValueError, match=f'{path} {message}') as info:
      saved_run.read(path, WHOSE)
    assert '\n' not in str(info.value) and len(str(info.value)) < 600


def test_a_missing_file_is_named(path, tmp_path):
  for wrong in (tmp_path / 'nothing', tmp_path):
    with pytest.raises(ValueError, match=f'{wrong} cannot be read'):
      saved_run.read(wrong, WHOSE)
  assert path.is_file()


def test_a_failed_write_leaves_the_old_file(path):
  before = path.read_bytes()
  with pytest.raises(ValueError, match='cannot hold a function'):
    saved_run.write(path, WHOSE, {'array': np.ones(10), 'bad': lambda: 0})
  assert path.read_bytes() == before
  assert [p.name for p in path.parent.iterdir()] == ['run']
