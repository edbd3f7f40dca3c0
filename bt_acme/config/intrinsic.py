"""Settings of the intrinsic reward: NGU (Badia et al. 2020), RND, constant."""

import dataclasses

from bt_acme.config import checks, network

# Longer than any episode.
_LARGEST_MEMORY = 10_000_000


@dataclasses.dataclass(frozen=True)
class IntrinsicConfig:
  """The intrinsic reward and its networks (NGU, RND).

  Attributes:
    intrinsic_reward: Reward for pre-training: `ngu` multiplies episodic by
      life-long novelty, `rnd` is the error of random network distillation
      alone, and `constant` gives the same reward at every step.
    embedding_size: Number of outputs of the embedding f, which is trained on
      inverse dynamics. NGU uses 32.
    inverse_dynamics_size: Number of hidden units of the classifier that
      predicts the action from two embeddings. NGU's text does not state it; 128
      follows public implementations.
    rnd_size: Number of outputs of both RND networks. The paper does not specify
      it.
    memory_capacity: Capacity of each environment's episodic memory in
      embeddings; the oldest are overwritten. NGU uses 30,000.
    num_neighbors: Number k of nearest neighbors that determine the episodic
      novelty. NGU uses 10.
    min_neighbors: Minimum number of embeddings in the memory; with fewer, the
      episodic novelty is 0. The papers do not specify the novelty for fewer
      than k neighbors; 1 uses all available ones.
    kernel_epsilon: Epsilon of the inverse kernel. NGU lists 1e-4 in its table
      and 1e-3 in its text.
    cluster_distance: Distance xi subtracted from every normalized squared
      distance, so that closer embeddings count as equal. NGU uses 0.008.
    pseudo_count: Constant c that is added to the similarity. NGU uses 0.001.
    max_similarity: Similarity s_m above which the episodic novelty is 0. NGU
      uses 8.
    reward_scale_limit: Upper bound L of the factor by which life-long novelty
      increases the episodic novelty. NGU uses 5.
    reward_observation: Observation for which an action is rewarded: with
      `current`, the action taken on x_t earns the novelty of x_t, which follows
      the order of the actor's steps in the papers; with `next`, it earns the
      novelty of x_{t+1}, the resulting observation, as is usual elsewhere. The
      papers do not discuss this. In both cases, the network's previous reward
      is the reward for x_{t-1}, because the reward for x_t is not known when
      the agent acts on x_t.
    alpha_offset: Offset of the life-long modulator alpha: 0 gives (err - mu) /
      sigma, as printed by Campos et al., and 1 gives 1 + (err - mu) / sigma, as
      in NGU.
    error_deviation: Divisor (sigma_e) of the RND errors while they have hardly
      varied: `one` divides by 1 as long as their deviation is below a
      thousandth of their mean; `floor` divides by 1 until there are two errors,
      and then by their deviation, but at least by 1e-4. The papers do not
      specify this. At the start of a run, all observations are often the same,
      and the first different one has an error of many sigma. With `one`, (err -
      mu_e) / sigma_e is then at most max(1000 / mu_e, 1) (err - mu_e); with
      `floor`, its only bound is sqrt(1 / b - 1), where the n-th error has the
      weight b = max(1 / n, error_decay).
    statistics_scope: Scope of the running statistics that normalize the reward
      (d_m^2, mu_e and sigma_e): `life` covers everything that an environment
      has shown so far, and `episode` only its current episode. Each environment
      has its own statistics. The papers mention running averages, but no
      window.
    error_decay: Decay rate of the mean and deviation of the RND errors, mu_e
      and sigma_e: the newest of n errors has the weight max(1 / n,
      error_decay). 0 uses the moments of all errors so far; 0.01 roughly covers
      the last 100 observations of each environment. An inference server on an
      accelerator computes the rewards in float32, with weights of at least
      2^-16: there, 0 covers about the last 65,536 observations, which are 2.4
      of Atari's longest episodes. NGU and Campos et al. mention a "running"
      mean and deviation, but do not say whether these decay. In a short run
      they should: the first errors are by far the largest, and as long as mu_e
      and sigma_e include them, NGU's modulator alpha never exceeds 1 and the
      reward of RND alone vanishes.
    distance_decay: Decay rate of the mean of the neighbors' squared distances,
      d_m^2: the step size of an exponential moving average; 0 uses the
      cumulative mean, on accelerators with the limit of error_decay. The papers
      do not specify which.
    constant_reward: Reward at each step with intrinsic_reward=constant.
    intrinsic_learning_rate: Learning rate of Adam for the embedding and the RND
      predictor. Campos et al. list 2e-4 for the agent and no rate for these two
      networks; 5e-4 follows NGU.
    intrinsic_steps: Number of real transitions of each sequence that train the
      embedding and the RND predictor (see intrinsic_window). The paper uses 5.
    intrinsic_window: Selection of the real transitions of a sequence that train
      the embedding and the RND predictor: `last` takes the last ones, as in the
      paper; `spread` takes a random one from each of intrinsic_steps equal
      parts of the sequence. Sequences start at fixed steps of an episode, so in
      short episodes the last transitions always come from the same few steps.
    inverse_dynamics_l2: Weight of the L2 penalty, the sum of the squared
      weights, without biases, of the embedding and its classifier. NGU uses
      1e-5.

  Example:
    ```python
    from bt_acme import config

    config.NGUConfig(intrinsic=config.IntrinsicConfig(num_neighbors=5))
    ```
  """

  intrinsic_reward: str = checks.choice('ngu', 'rnd', 'constant')
  embedding_size: int = checks.setting(
    32, above=0, largest=network.LARGEST_LAYER
  )
  inverse_dynamics_size: int = checks.setting(
    128, above=0, largest=network.LARGEST_LAYER
  )
  rnd_size: int = checks.setting(128, above=0, largest=network.LARGEST_LAYER)
  memory_capacity: int = checks.setting(
    30_000, above=0, largest=_LARGEST_MEMORY
  )
  num_neighbors: int = checks.setting(10, above=0)
  min_neighbors: int = checks.setting(1, above=0)
  kernel_epsilon: float = checks.setting(1e-4, above=0)
  cluster_distance: float = checks.setting(8e-3, minimum=0)
  pseudo_count: float = checks.setting(1e-3, minimum=0)
  max_similarity: float = checks.setting(8.0, above=0)
  reward_scale_limit: float = checks.setting(5.0, minimum=1)
  reward_observation: str = checks.choice('current', 'next')
  alpha_offset: float = checks.choice(0.0, 1.0)
  error_deviation: str = checks.choice('one', 'floor')
  statistics_scope: str = checks.choice('life', 'episode')
  error_decay: float = checks.setting(0.0, minimum=0, maximum=1)
  distance_decay: float = checks.setting(0.0, minimum=0, maximum=1)
  constant_reward: float = 1.0
  intrinsic_learning_rate: float = checks.setting(5e-4, above=0, largest=1)
  intrinsic_steps: int = checks.setting(5, above=0)
  intrinsic_window: str = checks.choice('last', 'spread')
  inverse_dynamics_l2: float = checks.setting(1e-5, minimum=0)

  @property
  def rewards_next(self) -> bool:
    """Whether an action gets the reward of the observation that it leads to."""
    return self.reward_observation == 'next'

  def __post_init__(self) -> None:
    checks.check(self)
    checks.require_order(vars(self), 'min_neighbors', 'num_neighbors')
    if self.intrinsic_reward != 'constant':
      without = f'intrinsic_reward={self.intrinsic_reward!r}'
      checks.require_defaults(self, 'constant_reward', without=without)
