"""Running statistics, in NumPy on the host or in JAX on a device.

Each formula is written once, over whichever arrays it is given; the host's are
float64. Means and variances are kept instead of sums. A float32 sum eventually
grows so large that adding a value no longer changes it; divided by a growing
count, it would drift to zero. A running mean merely stops changing.
"""

from typing import NamedTuple

from bt_acme.core import arrays

# Values whose standard deviation is a smaller share of their mean have not
# varied yet.
_MIN_SPREAD = 1e-3
_MIN_VARIANCE = 1e-8


class Moments(NamedTuple):
  """The moments of all values so far, or of a window that forgets.

  Attributes, float [...] each:
    count: number of values; it stops at the length of the window.
    mean: their mean; 0 without any.
    variance: their mean squared distance from the mean; 0 without any.
  """

  count: arrays.Array
  mean: arrays.Array
  variance: arrays.Array


class RunningMean(NamedTuple):
  """The mean of all values so far, float [...] each.

  Attributes:
    count: number of values.
    mean: their mean; 0 without any.
  """

  count: arrays.Array
  mean: arrays.Array


def update_moments(
  moments: Moments, value: arrays.Array, *, decay: float = 0.0
) -> Moments:
  """Takes in one more value.

    b = max(1 / n, decay)
    mean' = mean + b (x - mean)
    variance' = (1 - b) (variance + b (x - mean)^2)

  Without decay, b is 1 / n, and these are the moments of all values (Welford
  1962). With decay, they are those of the first 1 / decay values, and from then
  on those of an exponential window, in which a value has the weight decay when
  it is new and less with every value that follows.

  The count stops at the length of the window, 1 / decay, so that in
  `merge_moments` no environment has more weight than its window. It always
  reaches 2, because a smaller count says that the values cannot have varied.

  Args:
    moments: float [...].
    value: float [...].
    decay: the smallest weight of a new value, in [0, 1].

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
  # The formula of the variance, arranged so that float32 loses nothing when the
  # weight is small, and that the result is never negative.
  spread = (1 - weight) * delta**2
  variance = moments.variance + weight * (spread - moments.variance)
  return Moments(count, moments.mean + weight * delta, variance)


def standard_deviation(
  moments: Moments, *, unvaried: str = 'one'
) -> arrays.Array:
  """Returns sigma, a divisor even for values that have hardly varied.

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
  """Merges moments along the first axis, as if one had seen all values.

  Each part has the weight of its count. Moments that forget count at most the
  values of their window, so that parts whose windows are full weigh the same,
  however long ago each of them began.

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
  """Takes in the mean of some values.

  Args:
    average: float [...].
    value: float [...], the mean of the new values.
    count: float [...], the number of new values; 0 changes nothing.
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
