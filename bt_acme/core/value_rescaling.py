"""The signed hyperbolic function h that compresses returns, and its inverse.

h(x) = sign(x) (sqrt(|x| + 1) - 1) + ε x   (Pohlen et al. 2018,
arXiv:1805.11593; R2D2 with ε = 1e-3). The functions equal those of rlax, but
are rearranged so that float32 loses no digits near zero. Acting can use them
without importing rlax. Both JAX and NumPy arrays are supported; the result has
the type of the argument.
"""

from bt_acme.core import arrays


def rescale(x: arrays.Array, epsilon: float) -> arrays.Array:
  """Computes h(x), elementwise; ε = 0 means no rescaling, h(x) = x."""
  if not epsilon:
    return x
  xp = arrays.namespace(x)
  return x / (xp.sqrt(xp.abs(x) + 1) + 1) + epsilon * x


def invert(y: arrays.Array, epsilon: float) -> arrays.Array:
  """Finds the x with h(x) = y, elementwise.

  With s = sqrt((1 + 2ε)² + 4ε|y|), sqrt(|x| + 1) - 1 = 2|y| / (s + 1 + 2ε).
  """
  if not epsilon:
    return y
  xp = arrays.namespace(y)
  root = xp.sqrt((1 + 2 * epsilon) ** 2 + 4 * epsilon * xp.abs(y))
  scaled = 2 * y / (root + 1 + 2 * epsilon)
  return scaled * (xp.abs(scaled) + 2)
