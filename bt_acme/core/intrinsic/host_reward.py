"""Intrinsic rewards on the host, with the episodic memories of N environments.

`device_reward` is the JAX counterpart. On the host, the cost of an episodic
memory grows with the number of stored embeddings, and the rewards can be
computed while a device or an emulator is busy.
"""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

from bt_acme import config as config_lib
from bt_acme.core.intrinsic import episodic_memory, rewards
from bt_acme.core.intrinsic import features as features_lib
from bt_acme.core.intrinsic import reward_statistics as reward_lib

Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float32]


class HostReward:
  """The intrinsic rewards of N environments, in NumPy.

  Attributes:
    memories: N episodic memories, one for each environment; empty if the reward
      does not use them.
    alpha: float [N], the life-long modulator of the newest observations,
      undefined where they were not rewarded; None if the reward has no
      modulator.
  """

  def __init__(
    self,
    config: config_lib.IntrinsicConfig,
    num_environments: int,
    statistics: Sequence[Any] = reward_lib.NO_STATISTICS,
  ):
    """Initializes the rewards with empty memories.

    Args:
      config: the reward and its settings.
      num_environments: N, the number of environments.
      statistics: the running statistics to resume from, in the format of
        `restore_statistics`.
    """
    self._config = config
    self._num = num_environments
    self.alpha: npt.NDArray[Any] | None = None
    uses_memory = rewards.for_config(config).uses_memory
    self.memories = [
      episodic_memory.HostMemory(config.memory_capacity, config.embedding_size)
      for _ in range(num_environments if uses_memory else 0)
    ]
    self._statistics = reward_lib.NO_STATISTICS
    self.restore_statistics(statistics)

  def take(
    self,
    features: features_lib.Features | reward_lib.Rewarded,
    is_first: Bools,
    is_last: Bools,
    skipped: Bools | bool = False,
  ) -> Floats:
    """Returns the rewards of one observation of each environment.

    Args:
      features: the features [N, ...]; or the rewards already computed from them
        on a device, whose statistics then replace the current ones.
      is_first: bool [N], whether an episode starts with the observation.
      is_last: bool [N], whether an episode ends with the observation.
      skipped: bool [N], whether there are no features of the observation.

    Returns:
      float32 [N]. An observation that is skipped or not rewarded
      (`rewards.is_rewarded`) gets 0 and does not affect later rewards.
    """
    if isinstance(features, reward_lib.Rewarded):
      self.alpha = features.alpha
      self.restore_statistics(features.statistics)
      return np.asarray(features.reward)
    active = rewards.is_rewarded(self._config, is_last) & ~np.bool_(skipped)
    rewarded = rewards.evaluate(
      self._config,
      features_lib.Features(*(np.asarray(x, np.float64) for x in features)),
      self._remember(np.asarray(features.embedding), is_first, active),
      self._statistics,
      is_first,
    )
    self._statistics = jax.tree.map(
      lambda after, before: np.where(active, after, before),
      rewarded.statistics,
      self._statistics,
    )
    self.alpha = rewarded.alpha
    return np.where(active, rewarded.reward, 0.0).astype(np.float32)

  def _remember(
    self, embeddings: Floats, is_first: Bools, active: Bools
  ) -> episodic_memory.Neighbors:
    """Finds the neighbors of each embedding, then inserts it into its memory.

    Args:
      embeddings: float32 [N, D].
      is_first: bool [N], whether to clear the memory first.
      active: bool [N], whether there is an embedding to insert.

    Returns:
      Squared distances float64 [N, k] and their numbers int32 [N].
    """
    k = self._config.num_neighbors
    squared_distances = np.zeros([self._num, k])
    count = np.zeros(self._num, np.int32)
    for i, memory in enumerate(self.memories):
      if is_first[i]:
        memory.clear()
      if active[i]:
        nearest = memory.nearest(embeddings[i], k)
        squared_distances[i, : len(nearest)] = nearest
        count[i] = len(nearest)
        memory.insert(embeddings[i])
    return episodic_memory.Neighbors(squared_distances, count)

  def statistics(self) -> reward_lib.IntrinsicStatistics:
    """Returns the statistics, float64 [N] each, which are never changed."""
    return self._statistics

  def state(self) -> dict[str, Any]:
    """Returns the statistics, the modulator and the memories."""
    return {
      'statistics': list(self._statistics),
      'alpha': self.alpha,
      'memories': [memory.state() for memory in self.memories],
    }

  def restore(self, state: dict[str, Any]) -> None:
    """Restores a state returned by `state()`."""
    self.restore_statistics(state['statistics'])
    self.alpha = state['alpha']
    for memory, own in zip(self.memories, state['memories'], strict=True):
      memory.restore(own)

  def restore_statistics(self, statistics: Sequence[Any]) -> None:
    """Replaces the statistics; the memories stay unchanged.

    Args:
      statistics: float [N] each, or [] if all environments start from the same
        statistics.

    Raises:
      ValueError: if the statistics are for another number of environments.
    """
    for field in statistics:
      if np.shape(field) not in ((), (self._num,)):
        raise ValueError(
          f'The actor has envs_per_actor={self._num}, but the saved statistics '
          f'have envs_per_actor={np.size(field)}. Resume with the same value, '
          'or start in a new workdir.'
        )
    self._statistics = reward_lib.IntrinsicStatistics(
      *(np.full(self._num, x, np.float64) for x in statistics)
    )
