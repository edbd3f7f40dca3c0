"""Tests frame stacks of the learner and of actors."""

import jax
import jax.numpy as jnp
import numpy as np

from bt_acme.core import frame_stacking

N, SIDE, CHANNELS, STACKED = 3, 2, 3, 4


def test_stacks_are_rebuilt_with_the_newest_frame_last():
  frames = np.arange(6)[:, None, None, None, None] + np.array([0, 10])
  frames = np.broadcast_to(frames, (6, 2, 1, 1, 2)).astype(np.uint8)
  stacks = frame_stacking.stack_frames(jnp.asarray(frames), 3)
  assert stacks.shape == (4, 2, 1, 1, 6)
  assert stacks.dtype == jnp.uint8
  np.testing.assert_array_equal(stacks[1, 0, 0, 0], [1, 11, 2, 12, 3, 13])
  np.testing.assert_array_equal(
    frame_stacking.stack_frames(jnp.asarray(frames), 1), frames
  )


def test_stacks_on_the_device_are_the_observations():
  """The device gets whole observations only at the start of an episode."""
  rng = np.random.default_rng(0)
  start = jax.jit(frame_stacking.start, static_argnums=3)
  push = jax.jit(frame_stacking.push)
  shape = (N, SIDE, SIDE, CHANNELS * STACKED)
  observation = np.zeros(shape, np.uint8)
  stack = jnp.zeros(shape, jnp.uint8)
  starts = 0
  for t in range(20):
    is_first = rng.random(N) < 0.3 if t else np.ones(N, bool)
    frame = rng.integers(0, 256, (N, SIDE, SIDE, CHANNELS), np.uint8)
    continued = np.concatenate([observation[..., CHANNELS:], frame], axis=-1)
    fresh = rng.integers(0, 256, shape, np.uint8)
    observation = np.where(is_first[:, None, None, None], fresh, continued)
    if is_first.any():
      stack = start(stack, is_first, observation, CHANNELS)
      starts += 1
    newest = frame_stacking.newest_frame(observation, CHANNELS)
    assert newest.shape == (N, SIDE, SIDE, CHANNELS)
    assert newest.flags.c_contiguous
    stack = push(stack, newest)
    assert stack.dtype == jnp.uint8
    np.testing.assert_array_equal(stack, observation)
  assert 1 < starts < 20
