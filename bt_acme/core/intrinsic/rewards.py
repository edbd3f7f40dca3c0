"""The intrinsic rewards by name (`IntrinsicConfig.intrinsic_reward`).

A reward names the networks that it needs, and has a formula that works on both
NumPy and JAX arrays. To add one, write its formula, register it in the table
below, and add its name to the choices of `IntrinsicConfig.intrinsic_reward`.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from bt_acme import config as config_lib
from bt_acme.core import arrays
from bt_acme.core.intrinsic import episodic_memory
from bt_acme.core.intrinsic import features as features_lib
from bt_acme.core.intrinsic import reward_statistics as reward_lib


class Reward(NamedTuple):
  """One intrinsic reward.

  Attributes:
    networks: the names of the networks whose features it uses (`networks.py`).
      A reward with an `embedding` also uses the episodic memory.
    evaluate: (config, Features, Neighbors, statistics before the observation)
      -> Rewarded. Either all arrays are NumPy arrays or all are JAX arrays; the
      results have the same type.
  """

  networks: tuple[str, ...]
  evaluate: Callable[..., reward_lib.Rewarded]

  @property
  def uses_memory(self) -> bool:
    """Whether it uses the episodic memory of embeddings."""
    return 'embedding' in self.networks


def ngu(
  config: config_lib.IntrinsicConfig,
  features: features_lib.Features,
  neighbors: episodic_memory.Neighbors,
  statistics: reward_lib.IntrinsicStatistics,
) -> reward_lib.Rewarded:
  """Computes NGU's reward: episodic novelty, scaled by life-long novelty.

    r = r_episodic min(max(alpha, 1), L)
    alpha = offset + (err - mu_e) / sigma_e

  Episodic novelty rewards observations unlike others in the same episode. The
  modulator alpha is large for observations that were rare in all of training.
  err is the prediction error of RND, and its moments include the current error.
  Sources: Badia et al. 2020 (NGU, arXiv:2002.06038), Sec. 2 (offset 1); Campos
  et al. 2021 (arXiv:2102.13515), App. (offset 0).
  """
  statistics = reward_lib.add_error(
    statistics, features.error, decay=config.error_decay
  )
  novelty, statistics = episodic_memory.episodic_novelty(
    neighbors, statistics, config
  )
  sigma = reward_lib.error_deviation(statistics, config.error_deviation)
  alpha = config.alpha_offset + (features.error - statistics.error_mean) / sigma
  xp = arrays.namespace(alpha)
  reward = novelty * xp.clip(alpha, 1.0, config.reward_scale_limit)
  return reward_lib.Rewarded(reward, statistics, alpha)


def rnd(
  config: config_lib.IntrinsicConfig,
  features: features_lib.Features,
  neighbors: episodic_memory.Neighbors,
  statistics: reward_lib.IntrinsicStatistics,
) -> reward_lib.Rewarded:
  """Computes the reward of random network distillation: life-long novelty.

    r = err / sigma

  err is the prediction error, and sigma the standard deviation of all errors,
  including the current error. The mean is not subtracted. Burda et al. 2018
  (arXiv:1810.12894) instead divide by the standard deviation of the discounted
  return. Source: Campos et al. 2021 (arXiv:2102.13515), App. "Random Network
  Distillation". The networks are in `distillation`.
  """
  del neighbors
  statistics = reward_lib.add_error(
    statistics, features.error, decay=config.error_decay
  )
  sigma = reward_lib.error_deviation(statistics, config.error_deviation)
  return reward_lib.Rewarded(features.error / sigma, statistics)


def constant(
  config: config_lib.IntrinsicConfig,
  features: features_lib.Features,
  neighbors: episodic_memory.Neighbors,
  statistics: reward_lib.IntrinsicStatistics,
) -> reward_lib.Rewarded:
  """Returns `constant_reward`, a baseline that ignores novelty."""
  del neighbors
  xp = arrays.namespace(features.error)
  reward = xp.full_like(features.error, config.constant_reward)
  return reward_lib.Rewarded(reward, statistics)


BY_NAME: Mapping[str, Reward] = {
  'ngu': Reward(networks=('embedding', 'rnd'), evaluate=ngu),
  'rnd': Reward(networks=('rnd',), evaluate=rnd),
  'constant': Reward(networks=(), evaluate=constant),
}


def for_config(config: config_lib.IntrinsicConfig) -> Reward:
  """Returns the configured reward."""
  return BY_NAME[config.intrinsic_reward]


def evaluate(
  config: config_lib.IntrinsicConfig,
  features: features_lib.Features,
  neighbors: episodic_memory.Neighbors,
  statistics: reward_lib.IntrinsicStatistics,
  is_first: arrays.Array,
) -> reward_lib.Rewarded:
  """Computes the configured reward of one observation of each environment.

  Args:
    config: the reward and its settings.
    features: the features of the observations.
    neighbors: the neighbors of their embeddings.
    statistics: float [...] each, the statistics before the observations.
    is_first: bool [...], whether an episode starts with the observation.

  Returns:
    The rewards and the updated statistics.
  """
  if config.statistics_scope == 'episode':
    xp = arrays.namespace(is_first)
    statistics = reward_lib.IntrinsicStatistics(
      *(xp.where(is_first, 0, field) for field in statistics)
    )
  return for_config(config).evaluate(config, features, neighbors, statistics)


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
  if config.rewards_next:
    return arrays.namespace(is_last).ones_like(is_last)
  return ~is_last
