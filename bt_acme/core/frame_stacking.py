"""Frame stacks, so that each frame is stored and transferred only once.

An observation is a stack of the newest S frames, so successive observations
share all frames but one. While acting, the host sends only the newest frame to
the device, which stores the stack of every environment. The first observation
of an episode is sent whole, because it shares no frames with the previous
observation. Replay stores single frames, and the learner step rebuilds the
stacks on its device.
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bt_acme.core import arrays

Frames = npt.NDArray[np.uint8]


def stack_frames(frames: arrays.Array, num_stacked: int) -> arrays.Array:
  """Rebuilds the stacked observations of sequences of single frames.

  Args:
    frames: uint8 [S - 1 + T, B, H, W, C], the frames in order; B is optional.
    num_stacked: S, the number of frames in an observation.

  Returns:
    uint8 [T, B, H, W, C * S], the newest frame last.
  """
  length = frames.shape[0] - num_stacked + 1
  return arrays.namespace(frames).concatenate(
    [frames[i : i + length] for i in range(num_stacked)], axis=-1
  )


def newest_frame(observation: Frames, channels: int) -> Frames:
  """Returns the newest frame, which the host sends to the device.

  Args:
    observation: uint8 [N, H, W, C * S].
    channels: C.

  Returns:
    uint8 [N, H, W, C], contiguous.
  """
  return np.ascontiguousarray(observation[..., -channels:])


def start(
  stack: jax.Array, is_first: jax.Array, observation: jax.Array, channels: int
) -> jax.Array:
  """Replaces the stacks of the environments whose episode starts.

  `push` then appends the newest frame, as in every other step. The new stack is
  therefore shifted by one frame, so that `push` drops the duplicate of the
  newest frame at its start.

  Args:
    stack: uint8 [N, H, W, C * S].
    is_first: bool [N], whether an episode starts.
    observation: uint8 [N, H, W, C * S], used only where an episode starts.
    channels: C.

  Returns:
    uint8 [N, H, W, C * S].
  """
  older = jnp.roll(observation, channels, axis=-1)
  return jnp.where(is_first.reshape(-1, 1, 1, 1), older, stack)


def push(stack: jax.Array, newest: jax.Array) -> jax.Array:
  """Drops the oldest frame of each stack and appends the newest.

  Args:
    stack: uint8 [N, H, W, C * S].
    newest: uint8 [N, H, W, C].

  Returns:
    uint8 [N, H, W, C * S], the newest frame last.
  """
  channels = newest.shape[-1]
  return jnp.concatenate([stack[..., channels:], newest], axis=-1)
