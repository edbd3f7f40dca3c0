"""The interface of an intrinsic reward.

A reward names the networks that it needs, says whether it reads the episodic
memory, and gives its formula once, for NumPy's arrays and for JAX's. `host` and
`device` serve any reward: they keep the memories and the statistics of many
environments. Each reward has a file in `rewards`, and its name is listed there.

The statistics of an environment outlive its episodes unless the configuration
says otherwise. Every environment has its own, so that what it receives does not
depend on which others share its process.
"""

from typing import Any, Callable, NamedTuple, Optional, Tuple

from bt_acme import config as config_lib
from bt_acme.core import arrays
from bt_acme.core.intrinsic import features as features_lib
from bt_acme.core.intrinsic import running_statistics


class Neighbors(NamedTuple):
  """The nearest neighbors of an embedding in the memory of its episode.

  Attributes:
    squared_distances: float [..., k]; entries beyond `count` mean nothing.
    count: int [...], how many of the k neighbors exist. It is 0 if the reward
      does not read the memory.
  """

  squared_distances: arrays.Array
  count: arrays.Array


class IntrinsicStatistics(NamedTuple):
  """What a reward has learned of its scale; float [N], or [] for one.

  A reward leaves the statistics that it does not need at 0.

  Attributes:
    error_count: how many RND errors it has seen; with `error_decay`, at most as
      many as it remembers.
    error_mean: mu_e, the mean of these errors.
    error_variance: sigma_e^2, the variance of these errors.
    distance_count: how many squared distances to neighbors it has seen.
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
    """Returns statistics [] of one environment that had seen what all N saw."""
    return IntrinsicStatistics(
      *running_statistics.merge_moments(self.error_moments),
      *running_statistics.merge_means(self.mean_distance),
    )


class Rewarded(NamedTuple):
  """What a reward made of one observation, or of one of each of N environments.

  Attributes:
    reward: float [...].
    statistics: float [...], which hold the observation.
    alpha: float [...], the life-long modulator, for the metrics of episodes;
      None if the reward has none.
  """

  reward: arrays.Array
  statistics: Any
  alpha: Optional[arrays.Array] = None


class Reward(NamedTuple):
  """One intrinsic reward.

  Attributes:
    networks: the names of the networks whose features it reads (`networks.py`).
    uses_memory: whether it reads the episodic memory, which holds embeddings.
    evaluate: (config, Features, Neighbors, statistics before the observation)
      -> Rewarded. All arrays are NumPy's or all are JAX's, and the results are
      of their kind.
    statistics_class: the class of its statistics, a NamedTuple of floats with a
      method `merged` as `IntrinsicStatistics` has it. Checkpoints and exported
      behaviors store its fields by name.
  """

  networks: Tuple[str, ...]
  uses_memory: bool
  evaluate: Callable[
    [config_lib.IntrinsicConfig, features_lib.Features, Neighbors, Any],
    Rewarded,
  ]
  statistics_class: Any = IntrinsicStatistics


class RewardSpec(NamedTuple):
  """Which reward an actor receives, and what it starts from.

  Attributes:
    config: the reward and its settings.
    statistics: float [] each, the statistics that every environment starts
      from; None to start afresh.
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
  """Rewards one observation of each environment.

  Args:
    reward: the reward.
    config: the reward's settings.
    features: the features of the observations.
    neighbors: the neighbors of their embeddings.
    statistics: float [...] each, the statistics before the observations.
    is_first: bool [...], whether an episode starts with the observation.

  Returns:
    The rewards, and the statistics that hold the observations.
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
  """Returns which observations are rewarded and enter the statistics.

  An observation rewards the action that is taken on it or the action that led
  to it, as `reward_observation` says. No action of the episode is taken on the
  last observation.

  Args:
    config: the reward's settings.
    is_last: bool [N], whether the observation ends an episode.

  Returns:
    bool [N].
  """
  if config.reward_observation == 'next':
    return arrays.namespace(is_last).ones_like(is_last)
  return ~is_last
