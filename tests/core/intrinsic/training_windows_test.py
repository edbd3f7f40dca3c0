"""Tests the selection of training transitions: last or spread."""

import collections
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme import config as config_lib
from bt_acme.core.intrinsic import training_windows
from tests.reference import intrinsic as reference

T, B = 9, 4
LENGTHS = np.array([9, 5, 2, 1])  # Valid transitions of each sequence.


def make_valid(lengths=LENGTHS):
  return np.float32(np.arange(T)[:, None] < lengths)


@functools.lru_cache
def spread(num_steps):
  draw = functools.partial(training_windows.spread_steps, num_steps=num_steps)
  return jax.jit(lambda valid, key: draw(valid, key=key))


@pytest.mark.parametrize('num_steps', [1, 2, 5, 9])
def test_spread_steps_match_reference(num_steps):
  lengths = np.array([9, 7, 5, 0])
  seen = [set() for _ in lengths]
  for seed in range(40):
    step, mask = spread(num_steps)(make_valid(lengths), jax.random.key(seed))
    assert step.shape == mask.shape == (num_steps, B)
    assert (step.dtype, mask.dtype) == (jnp.int32, jnp.float32)
    assert np.all((step >= 0) & (step < T))
    for b in range(B):
      seen[b].add(tuple(int(t) for t in step[mask[:, b] > 0, b]))
  for length, drawn in zip(lengths, seen, strict=True):
    possible = {
      tuple(reference.window_steps(int(length), num_steps, offset))
      for offset in range(max(length, 1))
    }
    assert drawn == possible


@pytest.mark.parametrize('length', [6, 7, 9])
def test_every_step_is_drawn_equally_often(length):
  num_steps = 4
  count = collections.Counter(
    t
    for offset in range(length)
    for t in reference.window_steps(length, num_steps, offset)
  )
  assert set(count) == set(range(length))
  assert set(count.values()) == {num_steps}


def test_steps_are_spread_in_order_and_apart():
  for seed in range(20):
    step, _ = spread(4)(make_valid(np.full(B, 9)), jax.random.key(seed))
    assert np.all(np.diff(step, axis=0) >= 2)
  # The sequences have different offsets.
  assert len({tuple(x) for x in np.asarray(step).T}) > 1


@pytest.mark.parametrize('window', ['last', 'spread'])
@pytest.mark.parametrize('num_steps', [1, 3, 20])
def test_a_window_contains_whole_transitions(window, num_steps):
  config = config_lib.IntrinsicConfig(
    intrinsic_steps=num_steps, intrinsic_window=window
  )
  rows = 10 * np.arange(T + 1)[:, None] + np.arange(B)
  observations, action, mask = training_windows.choose(
    config,
    jnp.array(rows[..., None]),
    jnp.array(100 + rows[:-1]),
    jnp.array(make_valid()),
    jax.random.key(0),
  )
  expected = np.minimum(LENGTHS, num_steps)
  np.testing.assert_array_equal(mask.sum(axis=0), expected)
  length = min(num_steps, T)
  assert action.shape == mask.shape == (length, B)
  before = observations[:length, :, 0]
  after = observations[-length:, :, 0]
  real = np.asarray(mask > 0)
  np.testing.assert_array_equal(action[real], 100 + before[real])
  np.testing.assert_array_equal(after[real], before[real] + 10)
  columns = np.broadcast_to(np.arange(B), real.shape)
  np.testing.assert_array_equal(before[real] % 10, columns[real])
  assert np.all(before[real] // 10 < LENGTHS[columns[real]])
