"""Values survive a round trip; untrusted input cannot exhaust memory."""

import io
import json

import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme.runtime import serialization
from tests.runtime import round_trips


@pytest.mark.parametrize(
  'value',
  [
    *(None, True, -(2**200), 0.1, float('inf'), 'ü\n', b'', b'\x00\xff'),
    *([], (), {}, [(), [{}]], {1: 'x', (2, b'y'): [3.0]}, {'array': 1}),
    *(np.float64(1e-310), np.float16(0.1), np.float32('-inf'), np.bool_(True)),
    *(np.uint64(2**64 - 1), np.int8(-128)),
  ],
)
def test_values_survive_a_round_trip(value):
  found = round_trips.round_trip(value)
  assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
  'array',
  [
    np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)),
    np.arange(24).reshape(2, 3, 4)[:, ::2],
    np.array([True, False]),
    np.array([0.5, -2]).astype(jnp.bfloat16),
    np.array(2.5 + 1j),
    np.zeros([0, 4], np.float32),
    np.array([np.nan, -0.0, 5e-324]),
  ],
)
def test_arrays_survive_a_round_trip(array):
  found = round_trips.round_trip(array)
  assert found.shape == array.shape and found.dtype == array.dtype
  assert found.tobytes() == array.tobytes()
  is_fortran = array.flags.f_contiguous and not array.flags.c_contiguous
  assert found.flags['F' if is_fortran else 'C']
  found[...] = 1  # The array is writable.


def test_repeated_bytes_are_stored_once():
  one, same = b'abc' * 100, b'cba' * 100
  file = io.BytesIO()
  serialization.dump([one, same, (one, one)], file)
  assert file.getvalue().endswith(b'\n' + one + same)
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
    (np.datetime64(1, 's'), 'datetime64'),
  ],
)
def test_other_types_are_errors(value, name):
  file = io.BytesIO()
  with pytest.raises(ValueError, match=f'{name} cannot be saved.* lists,'):
    serialization.dump({'x': [value]}, file)
  assert not file.getvalue()


F4 = np.dtype(np.float32).str


# tests/runtime/saved_nodes_test.py refuses whole files.
@pytest.mark.parametrize(
  'tree, message',
  [
    ({'pickle': 0}, 'pickle'),
    ({'tuple': [], 'dict': []}, 'too many values'),
    ({'dict': [[[], 1]]}, 'unhashable'),
    ({'bytes': 1}, '1'),
    ({'array': ['|O', [1], 'C', 0]}, 'O'),
    ({'array': [F4, [3], 'C', 0]}, 'cannot reshape array of size 2'),
    ({'array': [F4, [10**30], 'C', 0]}, 'Maximum allowed|int'),
    ({'array': [F4, [-1, -2], 'C', 0]}, 'can only specify one|negative'),
    ({'scalar': ['|O', 1]}, 'O'),
    ([{'array': [F4, [2], 'C', 0]}] * 2, '0'),
  ],
)
def test_an_invalid_tree_is_refused(tree, message):
  text = json.dumps({'sizes': [8], 'tree': tree}).encode() + b'\n' + bytes(8)
  errors = (KeyError, OverflowError, TypeError, ValueError)
  with pytest.raises(errors, match=message):
    serialization.load(io.BytesIO(text), len(text))
