"""Tests frame stacks of the learner and of actors."""

import jax
import jax.numpy as jnp
import numpy as np

from bt_acme.core import frame_stacking

N, SIDE, CHANNELS, STACKED = 3, 2, 3, 4


def test_stacks_of_single_frames_are_the_observations():
  """The learner gets single frames, and a device whole stacks at the start."""
  rng = np.random.default_rng(0)
  frames = rng.integers(0, 256, (20, N, SIDE, SIDE, CHANNELS), np.uint8)
  is_first = rng.random((20, N)) < 0.3
  is_first[0] = True
  start = jax.jit(frame_stacking.start, static_argnums=3)
  push = jax.jit(frame_stacking.push)
  stack = jnp.zeros((N, SIDE, SIDE, CHANNELS * STACKED), jnp.uint8)
  observation = np.asarray(stack)
  for t, first in enumerate(is_first):
    continued = np.concatenate([observation[..., CHANNELS:], frames[t]], -1)
    fresh = rng.integers(0, 256, stack.shape, np.uint8)
    observation = np.where(first[:, None, None, None], fresh, continued)
    if first.any():
      stack = start(stack, first, observation, CHANNELS)
    newest = frame_stacking.newest_frame(observation, CHANNELS)
    assert newest.shape == (N, SIDE, SIDE, CHANNELS)
    assert newest.flags.c_contiguous
    stack = push(stack, newest)
    assert stack.dtype == jnp.uint8
    np.testing.assert_array_equal(stack, observation)
  for num in (1, 3):
    stacks = frame_stacking.stack_frames(jnp.asarray(frames), num)
    assert stacks.shape == (21 - num, N, SIDE, SIDE, CHANNELS * num)
    for t, stacked in enumerate(stacks):
      np.testing.assert_array_equal(
        stacked, np.concatenate(frames[t : t + num], axis=-1)
      )
