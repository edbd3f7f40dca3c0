"""Frame stacks for acting: the host sends the device the newest frame only.

This is the actor's half; the learner's half is `core/frame_stacking.py`. An
observation is the stack of the newest S frames. The device keeps the stack
of every environment, so that a turn moves one frame to it instead of S. An
episode's first observation comes as a whole, because its frames are not those
that the environment showed before.
"""

import jax
import jax.numpy as jnp
import numpy as np


def newest_frame(observation: np.ndarray, channels: int) -> np.ndarray:
  """Returns what the host sends of an observation.

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

  `push` appends the newest frame afterwards, as in every other step. A new
  stack therefore holds the older frames of its observation, with the place of
  the oldest left free for `push` to drop.

  Args:
    stack: uint8 [N, H, W, C * S].
    is_first: bool [N], whether an episode starts.
    observation: uint8 [N, H, W, C * S], read where one starts.
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
