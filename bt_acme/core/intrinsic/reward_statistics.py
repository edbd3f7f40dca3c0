"""The result of an intrinsic reward and the running statistics that scale it.

`rewards` has the formulas that divide by them, and `host_reward` and
`device_reward` compute rewards for many environments, in NumPy and in JAX. The
formulas of the statistics support both types of arrays; the host uses float64.

The statistics of an environment persist across episodes, unless the
configuration resets them. Every environment has its own statistics, so that its
rewards do not depend on which other environments share its process.

Means and variances are stored instead of sums. A float32 sum eventually grows
so large that adding a value no longer changes it; divided by a growing count,
it would drift to zero. The weight of a new value in a float32 mean is at least
2^-16: with smaller weights, rare large values change the mean, but frequent
values below it are rounded away, and the mean drifts.
"""

from typing import Any, NamedTuple

import numpy as np

from bt_acme import config as config_lib
from bt_acme.core import arrays

# Errors are treated as constant if their standard deviation divided by their
# mean is at most this ratio.
_MIN_SPREAD = 1e-3
_MIN_VARIANCE = 1e-8
_MIN_FLOAT32_WEIGHT = 2.0**-16


class IntrinsicStatistics(NamedTuple):
  """Running statistics that scale a reward, float [N] ([] for one environment).

  Statistics that a reward does not need stay 0. Checkpoints and exported
  behaviors store them by name.

  Attributes:
    error_count: the number of RND errors so far; with `error_decay` or in
      float32, at most the length of the window.
    error_mean: mu_e, the mean of these errors.
    error_variance: sigma_e^2, the variance of these errors.
    distance_count: the number of squared distances to neighbors so far.
    distance_mean: d_m^2, the mean of these squared distances.
  """

  error_count: arrays.Array
  error_mean: arrays.Array
  error_variance: arrays.Array
  distance_count: arrays.Array
  distance_mean: arrays.Array

  def merged(self) -> 'IntrinsicStatistics':
    """Returns statistics [] as if one environment had made all observations.

    Each environment is weighted by its count. With `error_decay`, the count of
    errors is at most the length of the window, so all environments with full
    windows have equal weights for errors, regardless of their ages; distances
    are always weighted by all that were observed. For NumPy arrays.

    Source: Chan et al. 1979, here for any number of parts at once.
    """
    count, mean = _merged_mean(self.error_count, self.error_mean)
    spread = self.error_variance + (self.error_mean - mean) ** 2
    variance = np.sum(self.error_count * spread, axis=0) / np.maximum(count, 1)
    distances = _merged_mean(self.distance_count, self.distance_mean)
    merged = (count, mean, variance, *distances)
    return IntrinsicStatistics(**dict(zip(self._fields, merged, strict=True)))


NO_STATISTICS = IntrinsicStatistics(*[0.0] * len(IntrinsicStatistics._fields))


class Rewarded(NamedTuple):
  """The reward of one observation, or of one observation per environment.

  Attributes:
    reward: float [...].
    statistics: float [...], updated with the observation.
    alpha: float [...], the life-long modulator, for the metrics of episodes;
      None if the reward has no modulator.
  """

  reward: arrays.Array
  statistics: IntrinsicStatistics
  alpha: arrays.Array | None = None


class RewardSpec(NamedTuple):
  """The reward of an actor and its initial statistics.

  Attributes:
    config: the reward and its settings.
    statistics: float [] each, the initial statistics of every environment.
  """

  config: config_lib.IntrinsicConfig
  statistics: Any = NO_STATISTICS


def add_error(
  statistics: IntrinsicStatistics, error: arrays.Array, *, decay: float = 0.0
) -> IntrinsicStatistics:
  """Updates the moments of the RND errors with one error x.

    b = max(1 / n, decay)
    mean' = mean + b (x - mean)
    variance' = (1 - b) (variance + b (x - mean)^2)

  Without decay, b is 1 / n, and the result is the moments of all errors
  (Welford 1962), in float32 of about the last 65,536. With decay, the result is
  the moments of all errors up to the first 1 / decay errors, and of an
  exponential window afterwards: the newest error has the weight `decay`, and
  older errors have smaller weights.

  The count is limited to the length of the window, 1 / decay, so that no
  environment has more weight than its window in `merged`. The limit is at least
  2, because errors cannot vary with a smaller count.

  Args:
    statistics: float [...] each.
    error: float [...].
    decay: the minimum weight of a new error, in [0, 1].

  Returns:
    Statistics that include the error.
  """
  mean, variance = statistics.error_mean, statistics.error_variance
  xp = arrays.namespace(mean)
  decay = max(decay, _min_weight(mean))
  count = statistics.error_count + 1
  weight = 1 / count
  if decay:
    weight = xp.maximum(weight, xp.asarray(decay, mean.dtype))
    count = xp.minimum(count, xp.asarray(max(1 / decay, 2), mean.dtype))
  delta = error - mean
  # This form of the variance is accurate in float32 for small weights and never
  # negative.
  spread = (1 - weight) * delta**2
  return statistics._replace(
    error_count=count,
    error_mean=mean + weight * delta,
    error_variance=variance + weight * (spread - variance),
  )


def error_deviation(
  statistics: IntrinsicStatistics, unvaried: str = 'one'
) -> arrays.Array:
  """Returns sigma_e, safe to divide by even if the errors have hardly varied.

  Args:
    statistics: float [...] each.
    unvaried: `one` or `floor`, as `IntrinsicConfig.error_deviation` describes.

  Returns:
    float [...].
  """
  xp = arrays.namespace(statistics.error_variance)
  if unvaried == 'floor':
    sigma = xp.sqrt(xp.maximum(statistics.error_variance, _MIN_VARIANCE))
    return xp.where(statistics.error_count < 2, 1.0, sigma)
  sigma = xp.sqrt(statistics.error_variance)
  has_varied = sigma > _MIN_SPREAD * xp.abs(statistics.error_mean)
  return xp.where(has_varied, sigma, 1.0)


def add_distances(
  statistics: IntrinsicStatistics,
  mean: arrays.Array,
  count: arrays.Array,
  *,
  decay: float,
) -> IntrinsicStatistics:
  """Updates d_m^2 with several squared distances, given their mean.

  Args:
    statistics: float [...] each.
    mean: float [...], the mean of the new distances.
    count: float [...], the number of new distances; 0 leaves d_m^2 unchanged.
    decay: 0 for the mean of all distances, in float32 of those of about the
      last 65,536 observations; above 0, the step size of an exponential mean,
      which starts at the first value.

  Returns:
    Statistics that include the distances.
  """
  before = statistics.distance_mean
  xp = arrays.namespace(before)
  total = statistics.distance_count + count
  if decay:
    step = xp.where(statistics.distance_count == 0, 1.0, decay)
  else:
    step = xp.maximum(count / xp.maximum(total, 1), _min_weight(before))
  step = xp.where(count == 0, 0.0, step).astype(before.dtype)
  return statistics._replace(
    distance_count=total, distance_mean=before + step * (mean - before)
  )


def _min_weight(mean: arrays.Array) -> float:
  return _MIN_FLOAT32_WEIGHT if mean.dtype == np.float32 else 0.0


def _merged_mean(
  count: arrays.Array, mean: arrays.Array
) -> tuple[arrays.Array, arrays.Array]:
  """Merges N means, weighted by their counts: [N, ...] -> [...]."""
  total = np.sum(count, axis=0)
  return total, np.sum(count * mean, axis=0) / np.maximum(total, 1)
