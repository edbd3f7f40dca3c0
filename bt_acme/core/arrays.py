"""Helpers for formulas that work on both NumPy and JAX arrays."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Array = Any  # jax.Array or a NumPy array; results have the arguments' type.


def namespace(array: Array) -> Any:
  """Returns `jax.numpy` for a JAX array, else `numpy`."""
  return jnp if isinstance(array, jax.Array) else np


def stop_gradient(array: Array) -> Array:
  """Returns the array unchanged, but blocks its gradient."""
  return jax.lax.stop_gradient(array) if isinstance(array, jax.Array) else array


def tree_where(condition: jax.Array, x: Any, y: Any) -> Any:
  """Selects x where the condition holds, else y, leaf by leaf."""
  return jax.tree.map(lambda a, b: jnp.where(condition, a, b), x, y)


def masked_mean(values: jax.Array, mask: jax.Array) -> jax.Array:
  """Computes the mean of the values where a mask is 1.

  Args:
    values: float32 [...]; ignored where the mask is 0, even if NaN.
    mask: float32 [...], 0 or 1.

  Returns:
    float32 []; 0 if the mask is 0 everywhere.
  """
  total = jnp.sum(jnp.where(mask > 0, values, 0.0))
  return total / jnp.maximum(jnp.sum(mask), 1.0)
