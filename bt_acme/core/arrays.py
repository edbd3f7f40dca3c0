"""Formulas that are written once, for NumPy's arrays and for JAX's."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Array = Any  # jax.Array or a NumPy array; results are of the arguments' kind.


def namespace(array: Array) -> Any:
  """Returns `jax.numpy` for JAX's arrays, else `numpy`."""
  return jnp if isinstance(array, jax.Array) else np
