"""The interface of an intrinsic reward.

A reward defines which networks it needs, whether it uses the episodic memory,
and a formula that works on both NumPy and JAX arrays. `host` and `device`
support any reward: they store the memories and statistics of many environments.
Each reward has a file in `rewards` and is registered there by name.

The statistics of an environment persist across episodes, unless the
configuration resets them. Every environment has its own statistics, so that its
rewards do not depend on which other environments share its process.
"""

from typing import Any, Callable, NamedTuple, Optional, Tuple

from bt_acme import config as config_lib
from bt_acme.core import arrays
from bt_acme.core.intrinsic import features as features_lib
from bt_acme.core.intrinsic import running_statistics


class Neighbors(NamedTuple):
  """The nearest neighbors of an embedding in the memory of its episode.

  Attributes:
    squared_distances: float [..., k]; entries from `count` on are undefined.
    count: int [...], the number of existing neighbors, at most k; 0 if the
      reward does not use the memory.
  """

  squared_distances: arrays.Array
  count: arrays.Array


class IntrinsicStatistics(NamedTuple):
  """Running statistics that scale a reward, float [N] ([] for one environment).

  Statistics that a reward does not need stay 0.

  Attributes:
    error_count: the number of RND errors so far; with `error_decay`, at most
      the length of the window.
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

  @property
  def error_moments(self) -> running_statistics.Moments:
    """The moments of the RND errors."""
    return running_statistics.Moments(*self[:3])

  @property
  def mean_distance(self) -> running_statistics.RunningMean:
    """The mean of the squared distances."""
    return running_statistics.RunningMean(*self[3:])

  def merged(self) -> 'IntrinsicStatistics':
    """Returns statistics [] as if one environment had made all observations."""
    return IntrinsicStatistics(
      *running_statistics.merge_moments(self.error_moments),
      *running_statistics.merge_means(self.mean_distance),
    )


class Rewarded(NamedTuple):
  """The reward of one observation, or of one observation per environment.

  Attributes:
    reward: float [...].
    statistics: float [...], updated with the observation.
    alpha: float [...], the life-long modulator, for the metrics of episodes;
      None if the reward has no modulator.
  """

  reward: arrays.Array
  statistics: Any
  alpha: Optional[arrays.Array] = None


class Reward(NamedTuple):
  """One intrinsic reward.

  Attributes:
    networks: the names of the networks whose features it uses (`networks.py`).
    uses_memory: whether it uses the episodic memory of embeddings.
    evaluate: (config, Features, Neighbors, statistics before the observation)
      -> Rewarded. Either all arrays are NumPy arrays or all are JAX arrays; the
      results have the same type.
    statistics_class: the class of its statistics, a NamedTuple of floats with a
      method `merged` like that of `IntrinsicStatistics`. Checkpoints and
      exported behaviors store its fields by name.
  """

  networks: Tuple[str, ...]
  uses_memory: bool
  evaluate: Callable[
    [config_lib.IntrinsicConfig, features_lib.Features, Neighbors, Any],
    Rewarded,
  ]
  statistics_class: Any = IntrinsicStatistics


class RewardSpec(NamedTuple):
  """The reward of an actor and its initial statistics.

  Attributes:
    config: the reward and its settings.
    statistics: float [] each, the initial statistics of every environment; None
      to start from zeros.
  """

  config: config_lib.IntrinsicConfig
  statistics: Optional[Any] = None


def evaluate(
  reward: Reward,
  config: config_lib.IntrinsicConfig,
  features: features_lib.Features,
  neighbors: Neighbors,
  statistics: Any,
  is_first: arrays.Array,
) -> Rewarded:
  """Computes the reward of one observation of each environment.

  Args:
    reward: the reward.
    config: the reward's settings.
    features: the features of the observations.
    neighbors: the neighbors of their embeddings.
    statistics: float [...] each, the statistics before the observations.
    is_first: bool [...], whether an episode starts with the observation.

  Returns:
    The rewards and the updated statistics.
  """
  if config.statistics_scope == 'episode':
    xp = arrays.namespace(is_first)
    statistics = type(statistics)(
      *(xp.where(is_first, 0, field) for field in statistics)
    )
  return reward.evaluate(config, features, neighbors, statistics)


def is_rewarded(
  config: config_lib.IntrinsicConfig, is_last: arrays.Array
) -> arrays.Array:
  """Returns which observations are rewarded and included in the statistics.

  Depending on `reward_observation`, the reward of an observation goes to the
  action taken on it or to the action that led to it. No action of the episode
  is taken on the last observation.

  Args:
    config: the reward's settings.
    is_last: bool [N], whether the observation ends an episode.

  Returns:
    bool [N].
  """
  if config.reward_observation == 'next':
    return arrays.namespace(is_last).ones_like(is_last)
  return ~is_last
