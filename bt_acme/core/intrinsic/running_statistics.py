"""Running statistics, in NumPy on the host or in JAX on a device.

Each formula is written once, over whichever arrays it is given; the host's are
float64. Means and variances are kept instead of sums: where float32 counts so
far that one more value changes nothing, a mean stands still, while a sum that
stands still, divided by a count that grows, would go to zero.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

Array = Any  # jax.Array or a NumPy array: results are of the arguments' kind.

_MIN_SPREAD = 1e-3  # Of the mean: what varies less has not varied yet.
_MIN_VARIANCE = 1e-8


def namespace(array: Array) -> Any:
  """`jax.numpy` for JAX's arrays, else `numpy`."""
  return jnp if isinstance(array, jax.Array) else np


class Moments(NamedTuple):
  """Of all values so far; float [...] each, one for each statistic.

  Attributes:
    count: of values.
    mean: of them; 0 without any.
    variance: mean squared distance from the mean; 0 without any.
  """

  count: Array
  mean: Array
  variance: Array


class RunningMean(NamedTuple):
  """Of all values so far; float [...] each.

  Attributes:
    count: of values.
    mean: of them; 0 without any.
  """

  count: Array
  mean: Array


def update_moments(moments: Moments, value: Array) -> Moments:
  """Takes in one value of each statistic (Welford 1962).

  Args:
    moments: float [...].
    value: float [...].

  Returns:
    Moments that hold it.
  """
  count = moments.count + 1
  delta = value - moments.mean
  mean = moments.mean + delta / count
  # The variance's own update: M2 / n of Welford's M2 += delta (x - mean).
  spread = delta * (value - mean)
  variance = moments.variance + (spread - moments.variance) / count
  return Moments(count, mean, variance)


def standard_deviation(moments: Moments, *, unvaried: str = 'one') -> Array:
  """sigma, to divide by, also where values have hardly varied.

  Args:
    moments: float [...].
    unvaried: `one` or `floor`, as `IntrinsicConfig.error_deviation` describes.

  Returns:
    float [...].
  """
  xp = namespace(moments.variance)
  if unvaried == 'floor':
    sigma = xp.sqrt(xp.maximum(moments.variance, _MIN_VARIANCE))
    return xp.where(moments.count < 2, 1.0, sigma)
  sigma = xp.sqrt(moments.variance)
  return xp.where(sigma > _MIN_SPREAD * xp.abs(moments.mean), sigma, 1.0)


def merge_moments(moments: Moments) -> Moments:
  """Moments of all values that the statistics of an axis took in.

  Source: Chan et al. 1979, for any number of parts at once.

  Args:
    moments: float [N, ...].

  Returns:
    float [...].
  """
  xp = namespace(moments.mean)
  total = merge_means(RunningMean(moments.count, moments.mean))
  spread = moments.variance + (moments.mean - total.mean) ** 2
  variance = xp.sum(moments.count * spread, axis=0)
  return Moments(*total, variance / xp.maximum(total.count, 1))


def update_mean(
  average: RunningMean, value: Array, count: Array, *, decay: float
) -> RunningMean:
  """Takes in the mean of some values.

  Args:
    average: float [...].
    value: float [...], the mean of the new values.
    count: float [...], how many they are; 0 changes nothing.
    decay: 0 for the mean of all values; above, the step size of an exponential
      mean, which starts at the first value.

  Returns:
    The mean that holds them.
  """
  xp = namespace(average.mean)
  total = average.count + count
  if decay:
    step = xp.where(average.count == 0, 1.0, decay)
  else:
    step = count / xp.maximum(total, 1)
  step = xp.where(count == 0, 0.0, step).astype(average.mean.dtype)
  return RunningMean(total, average.mean + step * (value - average.mean))


def merge_means(average: RunningMean) -> RunningMean:
  """One mean of N, weighted by their counts: [N, ...] -> [...]."""
  xp = namespace(average.mean)
  count = xp.sum(average.count, axis=0)
  weighted = xp.sum(average.count * average.mean, axis=0)
  return RunningMean(count, weighted / xp.maximum(count, 1))


def masked_mean(values: jax.Array, mask: jax.Array) -> jax.Array:
  """Mean over what the mask keeps: float32 [...] each -> []; 0 of nothing.

  What it leaves out may be anything, NaN too.
  """
  total = jnp.sum(jnp.where(mask > 0, values, 0.0))
  return total / jnp.maximum(jnp.sum(mask), 1.0)
