"""Tests the selection of training transitions: last or spread."""

import functools

import jax
import numpy as np
import pytest

from bt_acme import config as config_lib
from bt_acme.core.intrinsic import training_windows
from tests.reference import intrinsic as reference

T, B = 9, 4
LENGTHS = np.array([9, 5, 2, 1])  # Valid transitions of each sequence.


def make_valid(lengths=LENGTHS):
  return np.float32(np.arange(T)[:, None] < lengths)


@functools.partial(jax.jit, static_argnums=1)
def spread(valid, num_steps):
  """Returns the drawn steps and their mask for each of 40 keys."""
  draw = functools.partial(training_windows.spread_steps, valid, num_steps)
  return jax.vmap(draw)(jax.random.split(jax.random.key(0), 40))


@pytest.mark.parametrize('num_steps', [1, 4, 9])
def test_spread_steps_match_reference(num_steps):
  lengths = np.array([9, 9, 5, 0])
  seen = [set() for _ in lengths]
  steps, masks = map(np.asarray, spread(make_valid(lengths), num_steps))
  assert steps.shape == masks.shape == (40, num_steps, B)
  assert (steps.dtype, masks.dtype) == (np.int32, np.float32)
  assert np.all((steps >= 0) & (steps < T))
  for step, mask in zip(steps, masks, strict=True):
    for b in range(B):
      seen[b].add(tuple(step[mask[:, b] > 0, b]))
  for length, drawn in zip(lengths, seen, strict=True):
    possible = {
      tuple(reference.window_steps(int(length), num_steps, offset))
      for offset in range(max(length, 1))
    }
    assert drawn == possible
  # The sequences have different offsets.
  assert num_steps == 9 or np.any(steps[..., 0] != steps[..., 1])


@pytest.mark.parametrize('window', ['last', 'spread'])
@pytest.mark.parametrize('num_steps', [1, 3, 20])
def test_a_window_contains_whole_transitions(window, num_steps):
  config = config_lib.IntrinsicConfig(
    intrinsic_steps=num_steps, intrinsic_window=window
  )
  rows = 10 * np.arange(T + 1)[:, None] + np.arange(B)
  choose = jax.jit(functools.partial(training_windows.choose, config))
  observations, action, mask = map(
    np.asarray,
    choose(rows[..., None], 100 + rows[:-1], make_valid(), jax.random.key(0)),
  )
  expected = np.minimum(LENGTHS, num_steps)
  np.testing.assert_array_equal(mask.sum(axis=0), expected)
  length = min(num_steps, T)
  assert action.shape == mask.shape == (length, B)
  before = observations[:length, :, 0]
  after = observations[-length:, :, 0]
  real = mask > 0
  np.testing.assert_array_equal(action[real], 100 + before[real])
  np.testing.assert_array_equal(after[real], before[real] + 10)
  columns = np.broadcast_to(np.arange(B), real.shape)
  np.testing.assert_array_equal(before[real] % 10, columns[real])
  assert np.all(before[real] // 10 < LENGTHS[columns[real]])
