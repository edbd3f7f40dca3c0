"""Rebuilds frame stacks in the learner, so that replay stores frames only once.

The actor's counterpart is `acting/frame_stack.py`.

An observation is a stack of the newest S frames, so successive observations
share all frames but one. Replay stores and sends single frames. The learner
step rebuilds the stacks on its device.
"""

import jax
import jax.numpy as jnp


def stack_frames(frames: jax.Array, num_stacked: int) -> jax.Array:
  """Rebuilds the stacked observations of sequences of single frames.

  Args:
    frames: uint8 [S - 1 + T, B, H, W, C], the frames in order.
    num_stacked: S, the number of frames in an observation.

  Returns:
    uint8 [T, B, H, W, C * S], the newest frame last.
  """
  length = frames.shape[0] - num_stacked + 1
  return jnp.concatenate(
    [frames[i : i + length] for i in range(num_stacked)], axis=-1
  )
