"""Random network distillation as the only reward: life-long novelty.

    r = err / sigma

err is the prediction error, and sigma the standard deviation of all errors,
including the current error. The mean is not subtracted. Burda et al. 2018
(arXiv:1810.12894) instead divide by the standard deviation of the discounted
return. Source: Campos et al. 2021 (arXiv:2102.13515), App. "Random Network
Distillation". The networks are in `distillation`.
"""

from bt_acme import config as config_lib
from bt_acme.core.intrinsic import features as features_lib
from bt_acme.core.intrinsic import reward as reward_lib
from bt_acme.core.intrinsic import running_statistics


def evaluate(
  config: config_lib.IntrinsicConfig,
  features: features_lib.Features,
  neighbors: reward_lib.Neighbors,
  statistics: reward_lib.IntrinsicStatistics,
) -> reward_lib.Rewarded:
  """Rewards large prediction errors; see `Reward.evaluate`."""
  del neighbors
  moments = running_statistics.update_moments(
    statistics.error_moments, features.error, decay=config.error_decay
  )
  sigma = running_statistics.standard_deviation(
    moments, unvaried=config.error_deviation
  )
  return reward_lib.Rewarded(
    features.error / sigma,
    reward_lib.IntrinsicStatistics(*moments, *statistics.mean_distance),
  )


REWARD = reward_lib.Reward(
  networks=('rnd',), uses_memory=False, evaluate=evaluate
)
