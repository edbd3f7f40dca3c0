"""NGU's reward: episodic novelty, scaled by life-long novelty.

    r = r_episodic min(max(alpha, 1), L)

Episodic novelty rewards observations unlike others in the same episode. The
modulator alpha is large for observations that were rare in all of training.
Sources: Badia et al. 2020 (NGU, arXiv:2002.06038), Sec. 2; Campos et al. 2021
(arXiv:2102.13515), App.
"""

from bt_acme import config as config_lib
from bt_acme.core import arrays
from bt_acme.core.intrinsic import episodic_memory, running_statistics
from bt_acme.core.intrinsic import features as features_lib
from bt_acme.core.intrinsic import reward as reward_lib


def lifelong_modulator(
  error: arrays.Array,
  moments: running_statistics.Moments,
  *,
  alpha_offset: float,
  error_deviation: str = 'one',
) -> arrays.Array:
  """Computes alpha = offset + (err - mu_e) / sigma_e.

  Sources: Campos et al. 2021, App. (offset 0); Badia et al. 2020, Sec. 2
  (offset 1).

  Args:
    error: float [...], the prediction error of RND.
    moments: the moments of the errors, including this error.
    alpha_offset: 0 or 1.
    error_deviation: `one` or `floor`, see `IntrinsicConfig.error_deviation`.

  Returns:
    float [...].
  """
  sigma = running_statistics.standard_deviation(
    moments, unvaried=error_deviation
  )
  return alpha_offset + (error - moments.mean) / sigma


def ngu_reward(
  episodic_novelty: arrays.Array,
  alpha: arrays.Array,
  *,
  reward_scale_limit: float,
) -> arrays.Array:
  """Computes r = r_episodic min(max(alpha, 1), L); all are float [...]."""
  xp = arrays.namespace(alpha)
  return episodic_novelty * xp.clip(alpha, 1.0, reward_scale_limit)


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
    kernel_epsilon=config.kernel_epsilon,
    cluster_distance=config.cluster_distance,
    pseudo_count=config.pseudo_count,
    max_similarity=config.max_similarity,
    min_neighbors=config.min_neighbors,
    decay=config.distance_decay,
  )
  alpha = lifelong_modulator(
    features.error,
    moments,
    alpha_offset=config.alpha_offset,
    error_deviation=config.error_deviation,
  )
  reward = ngu_reward(
    novelty, alpha, reward_scale_limit=config.reward_scale_limit
  )
  return reward_lib.Rewarded(
    reward, reward_lib.IntrinsicStatistics(*moments, *mean_distance), alpha
  )


REWARD = reward_lib.Reward(
  networks=('embedding', 'rnd'), uses_memory=True, evaluate=evaluate
)
