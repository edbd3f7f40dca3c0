"""Random network distillation as the only reward: life-long novelty.

Source: Campos et al. 2021 (arXiv:2102.13515), App. "Random Network
Distillation". The networks are in `distillation`.
"""

from bt_acme import config as config_lib
from bt_acme.core import arrays
from bt_acme.core.intrinsic import features as features_lib
from bt_acme.core.intrinsic import reward as reward_lib
from bt_acme.core.intrinsic import running_statistics


def rnd_reward(
  error: arrays.Array,
  moments: running_statistics.Moments,
  *,
  error_deviation: str = 'one',
) -> arrays.Array:
  """Computes r = err / sigma, without subtracting the mean.

  Unlike here, Burda et al. 2018 (arXiv:1810.12894) divide by the standard
  deviation of the discounted return.

  Args:
    error: float [...], the prediction error.
    moments: the moments of the errors, including this error.
    error_deviation: `one` or `floor`, see `IntrinsicConfig.error_deviation`.

  Returns:
    float [...].
  """
  return error / running_statistics.standard_deviation(
    moments, unvaried=error_deviation
  )


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
  reward = rnd_reward(
    features.error, moments, error_deviation=config.error_deviation
  )
  return reward_lib.Rewarded(
    reward,
    reward_lib.IntrinsicStatistics(*moments, *statistics.mean_distance),
  )


REWARD = reward_lib.Reward(
  networks=('rnd',), uses_memory=False, evaluate=evaluate
)
