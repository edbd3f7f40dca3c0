"""The signed hyperbolic h that compresses returns, and its inverse.

h(x) = sign(x) (sqrt(|x| + 1) - 1) + ε x   (Pohlen et al. 2018,
arXiv:1805.11593; R2D2 with ε = 1e-3). These are the functions of rlax, arranged
so that float32 loses no digits near zero, and so that acting can use them
without loading rlax.
"""

import jax
import jax.numpy as jnp


def rescale(x: jax.Array, epsilon: float) -> jax.Array:
  """Computes h(x), elementwise; ε = 0 means no rescaling, h(x) = x."""
  if not epsilon:
    return x
  return x / (jnp.sqrt(jnp.abs(x) + 1) + 1) + epsilon * x


def invert(y: jax.Array, epsilon: float) -> jax.Array:
  """Finds the x with h(x) = y, elementwise.

  With s = sqrt((1 + 2ε)² + 4ε|y|), sqrt(|x| + 1) - 1 = 2|y| / (s + 1 + 2ε).
  """
  if not epsilon:
    return y
  root = jnp.sqrt((1 + 2 * epsilon) ** 2 + 4 * epsilon * jnp.abs(y))
  scaled = 2 * y / (root + 1 + 2 * epsilon)
  return scaled * (jnp.abs(scaled) + 2)
