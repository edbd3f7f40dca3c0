"""Reference of R2D2's signed hyperbolic h and its inverse in float64."""

import numpy as np


def rescale(x, epsilon):
  """Computes sign(x) (sqrt(|x| + 1) - 1) + epsilon x, or x if epsilon = 0."""
  x = np.asarray(x, np.float64)
  if epsilon == 0:
    return x
  return np.sign(x) * (np.sqrt(np.abs(x) + 1) - 1) + epsilon * x


def invert(y, epsilon):
  """Finds x with h(x) = y by bisection; h is strictly increasing."""
  y = np.asarray(y, np.float64)
  if epsilon == 0:
    return y
  low = np.zeros_like(y)
  high = (np.abs(y) + 1) ** 2  # h(x) > sqrt(x + 1) - 1.
  for _ in range(200):
    middle = (low + high) / 2
    below = rescale(middle, epsilon) < np.abs(y)
    low = np.where(below, middle, low)
    high = np.where(below, high, middle)
  return np.sign(y) * (low + high) / 2
