"""Intrinsic rewards on a device, with episodic memories in JAX.

`host` is the NumPy counterpart. An inference server computes the rewards of all
actors in the same call as their actions, with all episodic memories on the
device.
"""

import functools
from typing import Any, NamedTuple, Optional, Tuple

import jax
import jax.numpy as jnp

from bt_acme import config as config_lib
from bt_acme.core.intrinsic import episodic_memory, rewards
from bt_acme.core.intrinsic import features as features_lib
from bt_acme.core.intrinsic import reward as reward_lib


class RewardState(NamedTuple):
  """The reward state that one environment carries from step to step.

  Attributes:
    memory: the memory of the episode; () if the reward does not use it.
    statistics: the running statistics, float32 [] each.
  """

  memory: Any
  statistics: Any


def init(
  config: config_lib.IntrinsicConfig, statistics: Optional[Any] = None
) -> RewardState:
  """Creates the state of one environment, with an empty memory.

  Args:
    config: the reward and its settings.
    statistics: the running statistics to resume from, float [] each; None to
      start from zeros.

  Returns:
    The state before the first observation.
  """
  reward = rewards.for_config(config)
  if statistics is None:
    statistics = (0.0,) * len(reward.statistics_class._fields)
  memory: Any = ()
  if reward.uses_memory:
    memory = episodic_memory.init(config.memory_capacity, config.embedding_size)
  return RewardState(
    memory,
    reward.statistics_class(*(jnp.asarray(x, jnp.float32) for x in statistics)),
  )


def step(
  config: config_lib.IntrinsicConfig,
  state: RewardState,
  features: features_lib.Features,
  is_first: jax.Array,
) -> Tuple[reward_lib.Rewarded, RewardState]:
  """Computes the reward of one observation and updates memory and statistics.

  Args:
    config: the reward and its settings.
    state: the state before the observation.
    features: the features of the observation.
    is_first: bool [], whether an episode starts with the observation.

  Returns:
    The result for the observation, each field [], and the new state.
  """
  reward = rewards.for_config(config)
  k = config.num_neighbors
  memory = state.memory
  neighbors = reward_lib.Neighbors(
    jnp.zeros([k], jnp.float32), jnp.zeros([], jnp.int32)
  )
  if reward.uses_memory:
    memory = memory._replace(inserted=jnp.where(is_first, 0, memory.inserted))
    squared_distances = episodic_memory.nearest_squared_distances(
      memory.embeddings, memory.size, features.embedding, k
    )
    neighbors = reward_lib.Neighbors(
      squared_distances, jnp.minimum(memory.size, k)
    )
    memory = episodic_memory.insert(memory, features.embedding)
  rewarded = reward_lib.evaluate(
    reward, config, features, neighbors, state.statistics, is_first
  )
  return rewarded, RewardState(memory, rewarded.statistics)


def step_rows(
  config: config_lib.IntrinsicConfig,
  state: RewardState,
  rows: jax.Array,
  features: features_lib.Features,
  is_first: jax.Array,
  is_last: jax.Array,
) -> Tuple[reward_lib.Rewarded, RewardState]:
  """Computes the rewards of one observation in each of N out of M environments.

  An observation that is not rewarded (`reward.is_rewarded`) gets 0 and does not
  affect later rewards; its alpha is undefined.

  The memories are read in place, and one row of each is written. They are not
  copied if the caller donates the state.

  Args:
    config: the reward and its settings.
    state: the state before the observations, [M, ...].
    rows: int32 [N], indices of the environments in the state.
    features: the features of the observations, [N, ...].
    is_first: bool [N], whether an episode starts with the observation.
    is_last: bool [N], whether an episode ends with the observation.

  Returns:
    The rewards of the N environments, and the state after the observations,
    [M, ...].
  """
  before = jax.tree.map(lambda x: x[rows], state)
  rewarded, after = jax.vmap(functools.partial(step, config))(
    before, features, is_first
  )
  reward = rewarded.reward
  memory = state.memory
  if rewards.for_config(config).uses_memory:
    # Each row depends on its reward, so that XLA cannot write a memory before
    # reading it, which would need a copy. An embedding becomes NaN only if its
    # reward is NaN, and later rewards are then NaN anyway.
    row = jnp.where(jnp.isnan(reward)[:, None], jnp.nan, features.embedding)
    memory = episodic_memory.insert_rows(
      memory, rows, after.memory.inserted, row
    )
  # The memory of an ending episode needs no masking, because the next episode
  # clears it.
  active = reward_lib.is_rewarded(config, is_last)
  statistics = jax.tree.map(
    lambda old, new: jnp.where(active, new, old),
    before.statistics,
    after.statistics,
  )
  written = jax.tree.map(
    lambda x, y: x.at[rows].set(y), state.statistics, statistics
  )
  return (
    reward_lib.Rewarded(
      jnp.where(active, reward, 0.0), statistics, rewarded.alpha
    ),
    RewardState(memory, written),
  )
