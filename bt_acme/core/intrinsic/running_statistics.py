"""Running statistics, in NumPy on the host or in JAX on a device.

Each formula works on both types of arrays; the host uses float64. Means and
variances are stored instead of sums. A float32 sum eventually grows so large
that adding a value no longer changes it; divided by a growing count, it would
drift to zero. A running mean merely stops changing.
"""

from typing import NamedTuple

from bt_acme.core import arrays

# Values are treated as constant if their standard deviation divided by their
# mean is at most this ratio.
_MIN_SPREAD = 1e-3
_MIN_VARIANCE = 1e-8


class Moments(NamedTuple):
  """The moments of all values so far, or of an exponential window.

  Attributes, float [...] each:
    count: number of values; at most the length of the window.
    mean: their mean; 0 if there are no values.
    variance: their mean squared distance from the mean; 0 if there are no
      values.
  """

  count: arrays.Array
  mean: arrays.Array
  variance: arrays.Array


class RunningMean(NamedTuple):
  """The mean of all values so far, float [...] each.

  Attributes:
    count: number of values.
    mean: their mean; 0 if there are no values.
  """

  count: arrays.Array
  mean: arrays.Array


def update_moments(
  moments: Moments, value: arrays.Array, *, decay: float = 0.0
) -> Moments:
  """Updates moments with one value.

    b = max(1 / n, decay)
    mean' = mean + b (x - mean)
    variance' = (1 - b) (variance + b (x - mean)^2)

  Without decay, b is 1 / n, and the result is the moments of all values
  (Welford 1962). With decay, the result is the moments of all values up to the
  first 1 / decay values, and of an exponential window afterwards: the newest
  value has the weight `decay`, and older values have smaller weights.

  The count is limited to the length of the window, 1 / decay, so that no
  environment has more weight than its window in `merge_moments`. The limit is
  at least 2, because values cannot vary with a smaller count.

  Args:
    moments: float [...].
    value: float [...].
    decay: the minimum weight of a new value, in [0, 1].

  Returns:
    Moments that include the value.
  """
  xp, dtype = arrays.namespace(moments.mean), moments.mean.dtype
  count = moments.count + 1
  weight = 1 / count
  if decay:
    weight = xp.maximum(weight, xp.asarray(decay, dtype))
    count = xp.minimum(count, xp.asarray(max(1 / decay, 2), dtype))
  delta = value - moments.mean
  # This form of the variance is accurate in float32 for small weights and never
  # negative.
  spread = (1 - weight) * delta**2
  variance = moments.variance + weight * (spread - moments.variance)
  return Moments(count, moments.mean + weight * delta, variance)


def standard_deviation(
  moments: Moments, *, unvaried: str = 'one'
) -> arrays.Array:
  """Returns sigma, safe to divide by even if the values have hardly varied.

  Args:
    moments: float [...].
    unvaried: `one` or `floor`, as `IntrinsicConfig.error_deviation` describes.

  Returns:
    float [...].
  """
  xp = arrays.namespace(moments.variance)
  if unvaried == 'floor':
    sigma = xp.sqrt(xp.maximum(moments.variance, _MIN_VARIANCE))
    return xp.where(moments.count < 2, 1.0, sigma)
  sigma = xp.sqrt(moments.variance)
  return xp.where(sigma > _MIN_SPREAD * xp.abs(moments.mean), sigma, 1.0)


def merge_moments(moments: Moments) -> Moments:
  """Merges moments along the first axis into the moments of all values.

  Each part is weighted by its count. With decay, the count is at most the
  length of the window, so all parts with full windows have equal weights,
  regardless of their ages.

  Source: Chan et al. 1979, here for any number of parts at once.

  Args:
    moments: float [N, ...].

  Returns:
    float [...].
  """
  xp = arrays.namespace(moments.mean)
  total = merge_means(RunningMean(moments.count, moments.mean))
  spread = moments.variance + (moments.mean - total.mean) ** 2
  variance = xp.sum(moments.count * spread, axis=0)
  return Moments(*total, variance / xp.maximum(total.count, 1))


def update_mean(
  average: RunningMean,
  value: arrays.Array,
  count: arrays.Array,
  *,
  decay: float,
) -> RunningMean:
  """Updates a mean with several values, given the mean of these values.

  Args:
    average: float [...].
    value: float [...], the mean of the new values.
    count: float [...], the number of new values; 0 leaves the mean unchanged.
    decay: 0 for the mean of all values; above 0, the step size of an
      exponential mean, which starts at the first value.

  Returns:
    The mean that includes the new values.
  """
  xp = arrays.namespace(average.mean)
  total = average.count + count
  if decay:
    step = xp.where(average.count == 0, 1.0, decay)
  else:
    step = count / xp.maximum(total, 1)
  step = xp.where(count == 0, 0.0, step).astype(average.mean.dtype)
  return RunningMean(total, average.mean + step * (value - average.mean))


def merge_means(average: RunningMean) -> RunningMean:
  """Merges N means, weighted by their counts: [N, ...] -> [...]."""
  xp = arrays.namespace(average.mean)
  count = xp.sum(average.count, axis=0)
  weighted = xp.sum(average.count * average.mean, axis=0)
  return RunningMean(count, weighted / xp.maximum(count, 1))
