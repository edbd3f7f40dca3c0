"""Frame stacks for acting: the host sends only the newest frame to the device.

The learner's counterpart is `core/frame_stacking.py`. An observation is a stack
of the newest S frames. The device stores the stack of every environment, so
that each step transfers one frame instead of S. The first observation of an
episode is transferred whole, because it shares no frames with the previous
observation.
"""

import jax
import jax.numpy as jnp
import numpy as np


def newest_frame(observation: np.ndarray, channels: int) -> np.ndarray:
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
