import jax
import jax.numpy as jnp
import numpy as np

from bt_acme.acting import frame_stack

N, SIDE, CHANNELS, STACKED = 3, 2, 3, 4


def test_stacks_on_the_device_are_the_observations():
  """The device gets whole observations only at the start of an episode."""
  rng = np.random.default_rng(0)
  start = jax.jit(frame_stack.start, static_argnums=3)
  push = jax.jit(frame_stack.push)
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
    newest = frame_stack.newest_frame(observation, CHANNELS)
    assert newest.shape == (N, SIDE, SIDE, CHANNELS)
    assert newest.flags.c_contiguous
    stack = push(stack, newest)
    assert stack.dtype == jnp.uint8
    np.testing.assert_array_equal(stack, observation)
  assert 1 < starts < 20
