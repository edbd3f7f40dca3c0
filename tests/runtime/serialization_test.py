"""Values survive a round trip; untrusted input cannot exhaust memory."""

import io

import numpy as np
import pytest

from bt_acme.runtime import serialization
from tests.runtime import round_trips


@pytest.mark.parametrize(
  'value',
  [
    *(None, True, 0, -(2**200), 0.1, float('inf'), 'ü\n', b'', b'\x00\xff'),
    *([], (), {}, [(), [{}]], {1: 'x', (2, b'y'): [3.0]}, {'array': 1}),
  ],
)
def test_values_survive_a_round_trip(value):
  found = round_trips.round_trip(value)
  assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
  'array',
  [
    np.arange(6.0).reshape(2, 3),
    np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)),
    np.arange(24).reshape(2, 3, 4)[:, ::2],
    np.array([True, False]),
    np.array(2.5 + 1j),
    np.zeros([0, 4], np.float32),
    np.array([np.nan, -0.0, 5e-324]),
    np.array([2**64 - 1], np.uint64),
  ],
)
def test_arrays_survive_a_round_trip(array):
  found = round_trips.round_trip(array)
  assert found.shape == array.shape and found.dtype == array.dtype
  assert found.tobytes() == array.tobytes()
  is_fortran = array.flags.f_contiguous and not array.flags.c_contiguous
  assert found.flags['F' if is_fortran else 'C']
  found[...] = 1  # The array is writable.


@pytest.mark.parametrize(
  'scalar',
  [
    *(np.float32(0.1), np.float64(0.1), np.float16(0.1), np.float32('-inf')),
    *(np.uint64(2**64 - 1), np.int8(-128), np.bool_(True), np.float64(1e-310)),
  ],
)
def test_scalars_survive_a_round_trip(scalar):
  found = round_trips.round_trip([scalar])[0]
  assert found == scalar and type(found) is type(scalar)


def test_repeated_bytes_are_stored_once():
  one, same = b'abc' * 100, b'cba' * 100
  _, parts = serialization.encode([one, same, (one, one)])
  assert parts == [one, same]
  found = round_trips.round_trip([one, same, (one, one)])
  assert found == [one, same, (one, one)]
  assert found[0] is found[2][1]


class Own(dict):
  """Subclass of dict, which is not supported."""


@pytest.mark.parametrize(
  'value, name',
  [
    (lambda: 0, 'function'),
    (Own(), 'Own'),
    ({1, 2}, 'set'),
    (np.array([object()]), 'ndarray'),
    (np.zeros(2, 'f4,f4'), 'ndarray'),
    (np.datetime64(1, 's'), 'datetime64'),
  ],
)
def test_other_types_are_errors(value, name):
  with pytest.raises(ValueError, match=f'{name} cannot be saved.* lists,'):
    serialization.encode({'x': [value]})


F4 = np.dtype(np.float32).str


@pytest.mark.parametrize(
  'tree, message',
  [
    ({'pickle': 0}, 'KeyError'),
    ({}, 'ValueError'),
    ({'tuple': [], 'dict': []}, 'ValueError'),
    ({'tuple': 3}, 'TypeError'),
    ({'dict': [[[], 1]]}, 'unhashable'),
    ({'dict': [[1]]}, 'ValueError'),
    ({'bytes': 1}, 'expected part 0, found part 1'),
    ({'bytes': [0]}, 'unhashable'),
    ([{'bytes': 0}, {'bytes': 1}], 'IndexError'),
    ({'array': ['|O', [1], 'C', 0]}, "KeyError: '|O'"),
    ({'array': [F4, [3], 'C', 0]}, '8 bytes do not fit <f4 of shape'),
    ({'array': [F4, [10**30], 'C', 0]}, '8 bytes do not fit <f4 of shape'),
    ({'array': [F4, [-1, -2], 'C', 0]}, '8 bytes do not fit <f4 of shape'),
    ({'array': [F4, [2.0], 'C', 0]}, 'TypeError'),
    ({'array': [F4, ['2'], 'C', 0]}, 'TypeError'),
    ({'array': [F4, [2], 'X', 0]}, 'ValueError'),
    ({'array': [F4, [2], 'C']}, 'TypeError'),
    ({'scalar': ['|O', 1]}, 'KeyError'),
    ({'scalar': [F4, [[], []]]}, 'Error'),
    ([{'array': [F4, [2], 'C', 0]}] * 2, 'expected part 1, found part 0'),
    ([{'array': [F4, [2], 'C', 0]}, {'bytes': 0}], 'found part 0'),
    ([{'bytes': 0}, {'array': [F4, [2], 'C', 0]}], 'found part 0'),
  ],
)
def test_an_invalid_tree_gives_a_one_line_error(tree, message):
  with pytest.raises(ValueError, match=message.replace('|', r'\|')) as info:
    serialization.decode(tree, [8], io.BytesIO(bytes(8)))
  assert str(info.value).startswith('is damaged (')
  assert '\n' not in str(info.value)


def test_a_deep_tree_gives_a_one_line_error():
  tree = []
  for _ in range(100_000):
    tree = [tree]
  with pytest.raises(ValueError, match='RecursionError'):
    serialization.decode(tree, [], io.BytesIO())
  while tree:  # Otherwise the interpreter would free it recursively.
    tree = tree[0]


def test_an_incomplete_part():
  with pytest.raises(ValueError, match='part 0 is incomplete'):
    serialization.decode(
      {'array': [F4, [2], 'C', 0]}, [8], io.BytesIO(bytes(7))
    )
