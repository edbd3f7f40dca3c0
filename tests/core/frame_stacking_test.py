"""Tests rebuilding frame stacks from single frames."""

import jax.numpy as jnp
import numpy as np

from bt_acme.core import frame_stacking


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
