"""NGU's reward: episodic novelty, scaled by life-long novelty.

    r = r_episodic min(max(alpha, 1), L)
    alpha = offset + (err - mu_e) / sigma_e

Episodic novelty rewards observations unlike others in the same episode. The
modulator alpha is large for observations that were rare in all of training.
err is the prediction error of RND, and its moments include the current error.
Sources: Badia et al. 2020 (NGU, arXiv:2002.06038), Sec. 2 (offset 1); Campos et
al. 2021 (arXiv:2102.13515), App. (offset 0).
"""

from bt_acme import config as config_lib
from bt_acme.core import arrays
from bt_acme.core.intrinsic import episodic_memory, running_statistics
from bt_acme.core.intrinsic import features as features_lib
from bt_acme.core.intrinsic import reward as reward_lib


def evaluate(
  config: config_lib.IntrinsicConfig,
  features: features_lib.Features,
  neighbors: reward_lib.Neighbors,
  statistics: reward_lib.IntrinsicStatistics,
) -> reward_lib.Rewarded:
  """Combines both kinds of novelty; see `Reward.evaluate`."""
  moments = running_statistics.update_moments(
    statistics.error_moments, features.error, decay=config.error_decay
  )
  novelty, mean_distance = episodic_memory.episodic_novelty(
    neighbors.squared_distances,
    neighbors.count,
    statistics.mean_distance,
    config,
  )
  sigma = running_statistics.standard_deviation(
    moments, unvaried=config.error_deviation
  )
  alpha = config.alpha_offset + (features.error - moments.mean) / sigma
  xp = arrays.namespace(alpha)
  reward = novelty * xp.clip(alpha, 1.0, config.reward_scale_limit)
  return reward_lib.Rewarded(
    reward, reward_lib.IntrinsicStatistics(*moments, *mean_distance), alpha
  )


REWARD = reward_lib.Reward(
  networks=('embedding', 'rnd'), uses_memory=True, evaluate=evaluate
)
