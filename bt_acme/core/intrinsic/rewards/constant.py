"""A constant reward, a baseline that ignores novelty."""

from bt_acme import config as config_lib
from bt_acme.core import arrays
from bt_acme.core.intrinsic import features as features_lib
from bt_acme.core.intrinsic import reward as reward_lib


def evaluate(
  config: config_lib.IntrinsicConfig,
  features: features_lib.Features,
  neighbors: reward_lib.Neighbors,
  statistics: reward_lib.IntrinsicStatistics,
) -> reward_lib.Rewarded:
  """Returns `constant_reward` for each observation; see `Reward.evaluate`."""
  del neighbors
  xp = arrays.namespace(features.error)
  return reward_lib.Rewarded(
    xp.full_like(features.error, config.constant_reward), statistics
  )


REWARD = reward_lib.Reward(networks=(), uses_memory=False, evaluate=evaluate)
