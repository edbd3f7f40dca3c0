"""Intrinsic rewards on a device, with episodic memories in JAX.

`host_reward` is the NumPy counterpart. An inference server computes the rewards
of all actors in the same call as their actions, with all episodic memories on
the device.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from bt_acme import config as config_lib
from bt_acme.core import arrays
from bt_acme.core.intrinsic import episodic_memory, rewards
from bt_acme.core.intrinsic import features as features_lib
from bt_acme.core.intrinsic import reward_statistics as reward_lib


class RewardState(NamedTuple):
  """The reward state that one environment carries from step to step.

  Attributes:
    memory: the memory of the episode; () if the reward does not use it.
    statistics: the running statistics, float32 [] each.
  """

  memory: Any
  statistics: reward_lib.IntrinsicStatistics


def init(
  config: config_lib.IntrinsicConfig,
  statistics: reward_lib.IntrinsicStatistics = reward_lib.NO_STATISTICS,
) -> RewardState:
  """Creates the state of one environment, with an empty memory.

  Args:
    config: the reward and its settings.
    statistics: the running statistics to resume from, float [] each.

  Returns:
    The state before the first observation.
  """
  memory: Any = ()
  if rewards.for_config(config).uses_memory:
    memory = episodic_memory.init(config.memory_capacity, config.embedding_size)
  return RewardState(
    memory, jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), statistics)
  )


def step(
  config: config_lib.IntrinsicConfig,
  state: RewardState,
  rows: jax.Array,
  features: features_lib.Features,
  is_first: jax.Array,
  is_last: jax.Array,
  skipped: jax.Array | bool = False,
) -> tuple[reward_lib.Rewarded, RewardState]:
  """Computes the rewards of one observation in each of N out of M environments.

  An observation that is skipped or not rewarded (`rewards.is_rewarded`) gets 0
  and does not affect later rewards; its alpha is undefined.

  The memories are read in place, and one row of each is written. They are not
  copied if the caller donates the state.

  Args:
    config: the reward and its settings.
    state: the state before the observations, [M, ...].
    rows: int32 [N], indices of the environments in the state.
    features: the features of the observations, [N, ...].
    is_first: bool [N], whether an episode starts with the observation.
    is_last: bool [N], whether an episode ends with the observation.
    skipped: bool [N], whether there are no features of the observation. If so,
      there are none in the whole episode.

  Returns:
    The rewards of the N environments, and the state after the observations,
    [M, ...].
  """
  uses_memory = rewards.for_config(config).uses_memory
  memories, statistics = state
  memory, before = jax.tree.map(lambda x: x[rows], state)
  neighbors = episodic_memory.Neighbors(
    jnp.zeros([len(rows), config.num_neighbors], jnp.float32),
    jnp.zeros(len(rows), jnp.int32),
  )
  if uses_memory:
    memory = memory._replace(inserted=jnp.where(is_first, 0, memory.inserted))
    neighbors = jax.vmap(
      functools.partial(episodic_memory.nearest, k=config.num_neighbors)
    )(memory, features.embedding)
  reward, after, alpha = rewards.evaluate(
    config, features, neighbors, before, is_first
  )
  if uses_memory:
    # Each row depends on its reward, so that XLA cannot write a memory before
    # reading it, which would need a copy. An embedding becomes NaN only if its
    # reward is NaN, and later rewards are then NaN anyway.
    row = jnp.where(jnp.isnan(reward)[:, None], jnp.nan, features.embedding)
    memories = episodic_memory.insert(memories, rows, memory.inserted + 1, row)
  # The memory of an ending or a skipped episode needs no masking, because the
  # next episode clears it.
  active = rewards.is_rewarded(config, is_last) & ~jnp.bool_(skipped)
  after = arrays.tree_where(active, after, before)
  statistics = jax.tree.map(lambda x, y: x.at[rows].set(y), statistics, after)
  rewarded = reward_lib.Rewarded(jnp.where(active, reward, 0.0), after, alpha)
  return rewarded, RewardState(memories, statistics)
