"""For formulas that are written once, for NumPy's arrays and for JAX's."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Array = Any  # jax.Array or a NumPy array; results are of the arguments' kind.


def namespace(array: Array) -> Any:
  """Returns `jax.numpy` for JAX's arrays, else `numpy`."""
  return jnp if isinstance(array, jax.Array) else np


def stop_gradient(array: Array) -> Array:
  """Returns the array, through which no gradient passes."""
  return jax.lax.stop_gradient(array) if isinstance(array, jax.Array) else array


def masked_mean(values: jax.Array, mask: jax.Array) -> jax.Array:
  """Computes the mean of the values that a mask keeps.

  Args:
    values: float32 [...]; anything where the mask is 0, even NaN.
    mask: float32 [...], 0 or 1.

  Returns:
    float32 []; 0 if the mask keeps nothing.
  """
  total = jnp.sum(jnp.where(mask > 0, values, 0.0))
  return total / jnp.maximum(jnp.sum(mask), 1.0)
