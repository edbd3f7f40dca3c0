"""Settings of the intrinsic reward: NGU (Badia et al. 2020), RND, constant."""

import dataclasses

from bt_acme.config import checks, network

# Longer than any episode.
_LARGEST_MEMORY = 10_000_000


@dataclasses.dataclass(frozen=True)
class IntrinsicConfig:
  """The intrinsic reward and the networks that it needs (NGU, RND)."""

  intrinsic_reward: str = checks.setting(
    'ngu',
    'The reward of pre-training: `ngu` multiplies episodic by life-long '
    'novelty, `rnd` is the error of random network distillation alone, and '
    '`constant` is the same in every step.',
    choices=('ngu', 'rnd', 'constant'),
  )
  embedding_size: int = checks.setting(
    32,
    'The embedding f, which inverse dynamics train, has this many outputs. '
    'NGU has 32.',
    above=0,
    largest=network.LARGEST_LAYER,
  )
  inverse_dynamics_size: int = checks.setting(
    128,
    'The classifier that predicts the action from two embeddings has this many '
    'hidden units.',
    above=0,
    largest=network.LARGEST_LAYER,
  )
  rnd_size: int = checks.setting(
    128,
    'Both networks of RND have this many outputs. The paper does not say how '
    'many.',
    above=0,
    largest=network.LARGEST_LAYER,
  )
  memory_capacity: int = checks.setting(
    30_000,
    "An environment's episodic memory holds this many embeddings; the oldest "
    'are overwritten. NGU has 30,000.',
    above=0,
    largest=_LARGEST_MEMORY,
  )
  num_neighbors: int = checks.setting(
    10,
    'The episodic novelty looks at this many nearest neighbors, k. NGU has 10.',
    above=0,
  )
  min_neighbors: int = checks.setting(
    1,
    'The episodic novelty is 0 while the memory holds fewer embeddings than '
    'this. The papers do not say what fewer than k neighbors are worth; 1 uses '
    'as many as there are.',
    above=0,
  )
  kernel_epsilon: float = checks.setting(
    1e-4,
    "The epsilon of the inverse kernel. NGU's table has 1e-4, and its text "
    'has 1e-3.',
    above=0,
  )
  cluster_distance: float = checks.setting(
    8e-3,
    'The distance xi that is subtracted from every normalized squared '
    'distance, so that closer embeddings count as equal. NGU has 0.008.',
    minimum=0,
  )
  pseudo_count: float = checks.setting(
    1e-3,
    'The constant c that is added to the similarity. NGU has 0.001.',
    minimum=0,
  )
  max_similarity: float = checks.setting(
    8.0,
    'The similarity s_m above which the episodic novelty is 0. NGU has 8.',
    above=0,
  )
  reward_scale_limit: float = checks.setting(
    5.0,
    'The bound L on the factor by which life-long novelty raises the episodic '
    'novelty. NGU has 5.',
    minimum=1,
  )
  reward_observation: str = checks.setting(
    'current',
    'Which observation an action is rewarded for: with `current`, the action '
    'that was taken on x_t earns the novelty of x_t, as in the order of the '
    "actor's steps in the papers; with `next`, it earns the novelty of "
    'x_{t+1}, to which it led, as is usual elsewhere. The papers do not '
    "discuss it. The network's previous reward is that of x_{t-1} either way, "
    'because that of x_t is not known when the agent acts on x_t.',
    choices=('current', 'next'),
  )
  alpha_offset: float = checks.setting(
    0.0,
    'The offset of the life-long modulator alpha: 0 gives (err - mu) / sigma, '
    'as Campos et al. print it, and 1 gives 1 + (err - mu) / sigma, as NGU '
    'has it.',
    choices=(0.0, 1.0),
  )
  error_deviation: str = checks.setting(
    'one',
    'What the errors of RND are divided by (sigma_e) while they have hardly '
    'varied: `one` divides by 1 as long as their deviation is below a '
    'thousandth of their mean; `floor` divides by 1 before there are two '
    'errors, and then by their deviation, but at least by 1e-4. The papers do '
    'not say. At the start of a run all observations are often the same, and '
    'the first one that differs then has an error of many sigma. With `one`, '
    '(err - mu_e) / sigma_e is then at most max(1000 / mu_e, 1) (err - mu_e); '
    'with `floor` its only bound is sqrt(1 / b - 1), where the n-th error has '
    'the weight b = max(1 / n, error_decay).',
    choices=('one', 'floor'),
  )
  statistics_scope: str = checks.setting(
    'life',
    'What the running statistics that normalize the reward (d_m^2, mu_e and '
    'sigma_e) cover: `life` covers all that an environment has shown so far, '
    'and `episode` only its current episode. Every environment has statistics '
    'of its own. The papers name running averages, but no window.',
    choices=('life', 'episode'),
  )
  error_decay: float = checks.setting(
    0.0,
    'The mean and deviation of the errors of RND, mu_e and sigma_e, forget at '
    'this rate: the newest of n errors has the weight max(1 / n, error_decay). '
    '0 takes the moments of all errors so far, and 0.01 roughly those of the '
    'last 100 observations of each environment. NGU and Campos et al. name a '
    '"running" mean and deviation; the papers do not say whether these forget. '
    'In a short run they should: the first errors are by far the largest, and '
    'as long as mu_e and sigma_e include them, the modulator alpha of NGU '
    'never exceeds 1 and the reward of RND alone vanishes.',
    minimum=0,
    maximum=1,
  )
  distance_decay: float = checks.setting(
    0.0,
    "The mean of the neighbors' squared distances, d_m^2, forgets at this "
    'rate, the step size of an exponential mean; 0 takes the cumulative mean. '
    'The papers do not say which it is.',
    minimum=0,
    maximum=1,
  )
  constant_reward: float = checks.setting(
    1.0, 'The reward of each step with intrinsic_reward=constant.'
  )
  intrinsic_learning_rate: float = checks.setting(
    5e-4,
    'The learning rate of Adam for the embedding and the predictor of RND. '
    'Campos et al. print 2e-4 for the agent and nothing for these two; 5e-4 is '
    'from NGU.',
    above=0,
    largest=1,
  )
  intrinsic_steps: int = checks.setting(
    5,
    'The embedding and the predictor of RND are trained on this many real '
    'transitions of each sequence (see intrinsic_window). The paper has 5.',
    above=0,
  )
  intrinsic_window: str = checks.setting(
    'last',
    'Which real transitions of a sequence train the embedding and the '
    'predictor of RND: `last` takes the last ones, as the paper does; `spread` '
    'takes one from each of intrinsic_steps equal parts of the sequence, at '
    'random. Sequences start at fixed steps of an episode, so that in short '
    'episodes the last transitions are always those of the same few steps.',
    choices=('last', 'spread'),
  )
  inverse_dynamics_l2: float = checks.setting(
    1e-5,
    'The weight of the L2 penalty on the parameters of the embedding and its '
    'classifier. NGU has 1e-5.',
    minimum=0,
  )

  def __post_init__(self) -> None:
    checks.check(self)
    checks.require(
      self.min_neighbors <= self.num_neighbors,
      f'min_neighbors={self.min_neighbors} exceeds '
      f'num_neighbors={self.num_neighbors}, so that all novelty would be 0: '
      'lower min_neighbors or raise num_neighbors.',
    )
