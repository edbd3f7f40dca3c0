"""The intrinsic reward of an observation, from its embedding and RND error.

    r = r_episodic min(max(alpha, 1), L)

The episodic novelty sends the agent away from what this episode has seen, the
modulator alpha towards what all of training has rarely seen. Sources: Badia et
al. 2020 (NGU, arXiv:2002.06038), Sec. 2; Campos et al. 2021 (arXiv:2102.13515),
App. Here is the novelty of x_t; which action it rewards is a setting
(`reward_observation`) that acting follows.

`IntrinsicReward` serves many environments on the host, `init` and `step` one of
them in JAX. In both, the memory is emptied where an episode starts while the
statistics outlive it, unless configured otherwise, and each environment has its
own: what it receives does not depend on which others share its process.
"""

import functools
from typing import Any, List, NamedTuple, Optional, Tuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bt_acme import config as config_lib
from bt_acme.core.intrinsic import episodic_memory, rnd, running_statistics


class IntrinsicStatistics(NamedTuple):
  """What the reward has learned of its scale; float [N], [] for one.

  Attributes:
    error_count: of RND errors seen.
    error_mean: mu_e.
    error_variance: sigma_e^2.
    distance_count: of squared distances to neighbors seen.
    distance_mean: d_m^2.
  """

  error_count: running_statistics.Array
  error_mean: running_statistics.Array
  error_variance: running_statistics.Array
  distance_count: running_statistics.Array
  distance_mean: running_statistics.Array


class Rewarded(NamedTuple):
  """What an intrinsic reward makes of one observation of each environment.

  Attributes:
    reward: float [N].
    statistics: float [N], that hold the observation.
  """

  reward: running_statistics.Array
  statistics: IntrinsicStatistics


def lifelong_modulator(
  error: running_statistics.Array,
  moments: running_statistics.Moments,
  *,
  alpha_offset: float,
  error_deviation: str = 'one',
) -> running_statistics.Array:
  """alpha = offset + (err - mu_e) / sigma_e.

  Sources: Campos et al. 2021, App. (offset 0); Badia et al. 2020, Sec. 2 (1).

  Args:
    error: float [...], of RND.
    moments: of the errors, this one included.
    alpha_offset: 0 or 1.
    error_deviation: `one` or `floor`.

  Returns:
    float [...].
  """
  sigma = running_statistics.standard_deviation(
    moments, unvaried=error_deviation
  )
  return alpha_offset + (error - moments.mean) / sigma


def ngu_reward(
  episodic_novelty: running_statistics.Array,
  alpha: running_statistics.Array,
  *,
  reward_scale_limit: float,
) -> running_statistics.Array:
  """r = r_episodic min(max(alpha, 1), L); all float [...]."""
  xp = running_statistics.namespace(alpha)
  return episodic_novelty * xp.clip(alpha, 1.0, reward_scale_limit)


def intrinsic_reward(
  config: config_lib.IntrinsicConfig,
  before: IntrinsicStatistics,
  errors: running_statistics.Array,
  squared_distances: running_statistics.Array,
  num_neighbors: running_statistics.Array,
  is_first: running_statistics.Array,
) -> Tuple[running_statistics.Array, IntrinsicStatistics]:
  """The reward that the configuration names.

  Args:
    config: which reward, and its settings.
    before: statistics, float [...].
    errors: float [...], of RND; unread by `constant`.
    squared_distances: float [..., k], to the nearest neighbors; read by `ngu`.
    num_neighbors: int [...], how many of the k there are.
    is_first: bool [...], whether an episode starts here.

  Returns:
    Rewards, float [...], and statistics that hold these observations.
  """
  xp = running_statistics.namespace(errors)
  if config.intrinsic_reward == 'constant':
    return xp.full_like(errors, config.constant_reward), before
  if config.statistics_scope == 'episode':
    before = IntrinsicStatistics(*(xp.where(is_first, 0, x) for x in before))
  moments = running_statistics.update_moments(
    running_statistics.Moments(*before[:3]), errors
  )
  mean_distance = running_statistics.RunningMean(*before[3:])
  if config.intrinsic_reward == 'rnd':
    reward = rnd.rnd_reward(
      errors, moments, error_deviation=config.error_deviation
    )
  else:
    novelty, mean_distance = episodic_memory.episodic_novelty(
      squared_distances,
      num_neighbors,
      mean_distance,
      kernel_epsilon=config.kernel_epsilon,
      cluster_distance=config.cluster_distance,
      pseudo_count=config.pseudo_count,
      max_similarity=config.max_similarity,
      min_neighbors=config.min_neighbors,
      decay=config.distance_decay,
    )
    alpha = lifelong_modulator(
      errors,
      moments,
      alpha_offset=config.alpha_offset,
      error_deviation=config.error_deviation,
    )
    reward = ngu_reward(
      novelty, alpha, reward_scale_limit=config.reward_scale_limit
    )
  return reward, IntrinsicStatistics(*moments, *mean_distance)


def merge_statistics(merged: IntrinsicStatistics) -> IntrinsicStatistics:
  """Statistics of N environments as one's that had seen it all: [N] -> []."""
  moments = running_statistics.merge_moments(
    running_statistics.Moments(*merged[:3])
  )
  mean_distance = running_statistics.merge_means(
    running_statistics.RunningMean(*merged[3:])
  )
  return IntrinsicStatistics(*moments, *mean_distance)


class IntrinsicReward:
  """The intrinsic rewards of N environments, in NumPy on the host.

  Attributes:
    memories: N, one an environment; none unless the reward is `ngu`.
  """

  def __init__(self, config: config_lib.IntrinsicConfig, num_environments: int):
    """Starts without memories and statistics.

    Args:
      config: which reward, and its settings.
      num_environments: N.
    """
    self._config = config
    self._num = num_environments
    self.memories: List[episodic_memory.HostMemory] = []
    if config.intrinsic_reward == 'ngu':
      self.memories = [
        episodic_memory.HostMemory(
          config.memory_capacity, config.embedding_size
        )
        for _ in range(num_environments)
      ]
    self._statistics = IntrinsicStatistics(
      *np.zeros([len(IntrinsicStatistics._fields), num_environments])
    )

  def step(
    self,
    embeddings: npt.NDArray[np.float32],
    errors: npt.NDArray[np.float32],
    is_first: npt.NDArray[np.bool_],
    active: Optional[npt.NDArray[np.bool_]] = None,
  ) -> npt.NDArray[np.float32]:
    """Rewards one observation of each environment and remembers it.

    Args:
      embeddings: float32 [N, D]; unread but by `ngu`.
      errors: float32 [N], of RND; unread by `constant`.
      is_first: bool [N], whether an episode starts here.
      active: bool [N]; the others get 0 and leave no trace. All by default.

    Returns:
      float32 [N].
    """
    if active is None:
      active = np.ones(self._num, bool)
    k = self._config.num_neighbors
    squared_distances = np.zeros([self._num, k])
    num_neighbors = np.zeros(self._num, np.int32)
    for i, memory in enumerate(self.memories):
      if is_first[i]:
        memory.clear()
      if active[i]:
        nearest = memory.nearest(embeddings[i], k)
        squared_distances[i, : len(nearest)] = nearest
        num_neighbors[i] = len(nearest)
        memory.insert(embeddings[i])
    before = self._statistics
    rewards, after = intrinsic_reward(
      self._config,
      before,
      np.where(active, errors, 0.0).astype(np.float64),
      squared_distances,
      num_neighbors,
      is_first,
    )
    self._statistics = IntrinsicStatistics(
      *(np.where(active, *pair) for pair in zip(after, before, strict=True))
    )
    return np.where(active, rewards, 0.0).astype(np.float32)

  def take(self, rewarded: Rewarded) -> npt.NDArray[np.float32]:
    """Rewards, float32 [N], that `step` made elsewhere for all of them."""
    self._statistics = IntrinsicStatistics(
      *(np.asarray(x, np.float64) for x in rewarded.statistics)
    )
    return np.asarray(rewarded.reward)

  def statistics(self) -> IntrinsicStatistics:
    """Float64 [N], one of each for each environment."""
    return IntrinsicStatistics(*(x.copy() for x in self._statistics))

  def restore(self, restored: IntrinsicStatistics) -> None:
    """Goes on from these; memories stay as they are.

    Args:
      restored: float [N], one for each environment, or [], one for all.

    Raises:
      ValueError: if they are of another number of environments.
    """
    fields = [np.asarray(x, np.float64) for x in restored]
    for field in fields:
      if field.shape not in ((), (self._num,)):
        raise ValueError(
          f'statistics of {field.size} environments cannot go on in '
          f'{self._num}: resume with as many environments an actor as before, '
          'or start in a fresh workdir.'
        )
    self._statistics = IntrinsicStatistics(
      *(np.broadcast_to(x, self._num).copy() for x in fields)
    )


class IntrinsicState(NamedTuple):
  """One environment's.

  Attributes:
    memory: of the episode; () unless the reward is `ngu`.
    statistics: float32 [].
  """

  memory: Any
  statistics: IntrinsicStatistics


def init(
  config: config_lib.IntrinsicConfig,
  restored: Optional[IntrinsicStatistics] = None,
) -> IntrinsicState:
  """The state of one environment.

  Args:
    config: which reward, and its settings.
    restored: statistics to go on from, float [].

  Returns:
    A state with an empty memory.
  """
  if restored is None:
    restored = IntrinsicStatistics(0.0, 0.0, 0.0, 0.0, 0.0)
  memory: Any = ()
  if config.intrinsic_reward == 'ngu':
    memory = episodic_memory.init(config.memory_capacity, config.embedding_size)
  return IntrinsicState(
    memory,
    IntrinsicStatistics(*(jnp.asarray(x, jnp.float32) for x in restored)),
  )


def step(
  config: config_lib.IntrinsicConfig,
  state: IntrinsicState,
  embedding: jax.Array,
  error: jax.Array,
  is_first: jax.Array,
) -> Tuple[jax.Array, IntrinsicState]:
  """Rewards one observation of one environment and remembers it.

  Args:
    config: which reward, and its settings.
    state: before it.
    embedding: float32 [D]; unread but by `ngu`.
    error: float32 [], of RND; unread by `constant`.
    is_first: bool [], whether an episode starts here.

  Returns:
    The reward, float32 [], and the state behind it.
  """
  k = config.num_neighbors
  memory = state.memory
  squared_distances = jnp.zeros([k], jnp.float32)
  num_neighbors = jnp.zeros([], jnp.int32)
  if config.intrinsic_reward == 'ngu':
    memory = memory._replace(inserted=jnp.where(is_first, 0, memory.inserted))
    squared_distances = episodic_memory.nearest_squared_distances(
      memory.embeddings, memory.size, embedding, k
    )
    num_neighbors = jnp.minimum(memory.size, k)
    memory = episodic_memory.insert(memory, embedding)
  reward, after = intrinsic_reward(
    config, state.statistics, error, squared_distances, num_neighbors, is_first
  )
  return reward, IntrinsicState(memory, after)


def step_rows(
  config: config_lib.IntrinsicConfig,
  state: IntrinsicState,
  rows: jax.Array,
  embedding: jax.Array,
  error: jax.Array,
  is_first: jax.Array,
  is_last: jax.Array,
) -> Tuple[Rewarded, IntrinsicState]:
  """`step` in N of M environments; an episode's last observation is apart.

  The action that it is the x_t of leads to another episode; it is rewarded
  where `reward_observation` is `next`, else it gets 0 and leaves no trace.

  Memories are read where they lie, and one row of each is written: where the
  caller gives the state away, none is ever copied.

  Args:
    config: which reward, and its settings.
    state: before it, [M, ...].
    rows: int32 [N], which environments of the state.
    embedding: float32 [N, D]; unread but by `ngu`.
    error: float32 [N], of RND; unread by `constant`.
    is_first: bool [N], whether an episode starts here.
    is_last: bool [N], whether one ends here.

  Returns:
    The rewards, float32 [N], and the state behind them, [M, ...].
  """
  before = jax.tree.map(lambda x: x[rows], state)
  reward, after = jax.vmap(functools.partial(step, config))(
    before, embedding, error, is_first
  )
  memory = state.memory
  if config.intrinsic_reward == 'ngu':
    # A row waits for its reward: XLA would copy memories that it is free to
    # write before it has read them. NaN, which lasts, is no loss.
    row = jnp.where(jnp.isnan(reward)[:, None], jnp.nan, embedding)
    memory = episodic_memory.insert_rows(
      memory, rows, after.memory.inserted, row
    )
  statistics = after.statistics
  if config.reward_observation == 'current':
    reward = jnp.where(is_last, 0.0, reward)
    # Its memory may stay as it is: the next episode empties it.
    statistics = jax.tree.map(
      lambda old, new: jnp.where(is_last, old, new),
      before.statistics,
      statistics,
    )
  written = jax.tree.map(
    lambda x, y: x.at[rows].set(y), state.statistics, statistics
  )
  return Rewarded(reward, statistics), IntrinsicState(memory, written)
