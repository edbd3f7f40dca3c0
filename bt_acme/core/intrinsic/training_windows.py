"""Selects the transitions that train the networks of the intrinsic reward.

`IntrinsicConfig.intrinsic_window` selects one of two strategies, with L
transitions each: `last` (Badia et al. 2020 and Campos et al. 2021, App.) and
`spread`.
"""

from typing import Any

import jax
import jax.numpy as jnp

from bt_acme import config as config_lib
from bt_acme.core import types


def choose(
  config: config_lib.IntrinsicConfig,
  observations: jax.Array,
  action: jax.Array,
  valid: jax.Array,
  key: types.PRNGKey,
) -> tuple[jax.Array, jax.Array, jax.Array]:
  """Selects transitions with the configured strategy.

  Args:
    config: the settings; only `intrinsic_steps` (at most T) and
      `intrinsic_window` are used.
    observations: uint8 [T + 1, B, H, W, C * S], the stacked observations.
    action: int32 [T, B], the executed actions.
    valid: float32 [T, B], 1 for valid steps, which come first.
    key: the random key for `spread`.

  Returns:
    The observations, uint8 [M, B, H, W, C * S]; the executed actions, int32
    [L, B]; and a mask, float32 [L, B], 1 for a valid transition. The first L
    rows of the observations are the x_t of the transitions, and the last L rows
    are the x_{t+1}. M is L + 1 for consecutive transitions and 2 L for others.
  """
  num_steps = min(config.intrinsic_steps, valid.shape[0])
  if config.intrinsic_window == 'last':
    start = jnp.maximum(_lengths(valid) - num_steps, 0)  # [B]
    rows = start + jnp.arange(num_steps + 1)[:, None]
    step = rows[:-1]
    mask = _rows(valid, step)
  else:
    step, mask = spread_steps(valid, num_steps, key)
    rows = jnp.concatenate([step, step + 1])
  return _rows(observations, rows), _rows(action, step), mask


def spread_steps(
  valid: jax.Array, num_steps: int, key: types.PRNGKey
) -> tuple[jax.Array, jax.Array]:
  """Draws one step from each of L equal parts of each sequence's valid steps.

    t_l = floor((l n + u) / L),   u uniform in 0 .. n - 1

  The n valid steps of a sequence are divided into L equal parts, and u is the
  same offset in all parts. Every step is drawn with the probability L / n. For
  a sequence with n <= L, every step is selected once.

  Args:
    valid: float32 [T, B], 1 for valid steps, which come first.
    num_steps: L, the number of steps, at most T.
    key: the random key for drawing a u for each sequence.

  Returns:
    t, int32 [L, B], and a mask, float32 [L, B], 1 where t is a valid step.
  """
  lengths = _lengths(valid)
  offset = jax.random.randint(
    key, lengths.shape, 0, jnp.maximum(lengths, 1), jnp.int32
  )
  part = jnp.arange(num_steps, dtype=jnp.int32)[:, None]
  spread = (part * lengths + offset) // num_steps
  step = jnp.where(lengths > num_steps, spread, part)
  return step, (part < lengths).astype(jnp.float32)


def _lengths(valid: jax.Array) -> jax.Array:
  """Counts the valid steps of each sequence, int32 [B]."""
  return jnp.sum(valid > 0, axis=0, dtype=jnp.int32)


def _rows(sequence: jax.Array, index: jax.Array) -> jax.Array:
  """Gathers rows [M, B] from sequences [T, B, ...], separately for each."""
  take: Any = jax.vmap(lambda row, i: row[i], in_axes=1, out_axes=1)
  rows: jax.Array = take(sequence, index)
  return rows
