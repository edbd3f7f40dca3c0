"""Intrinsic rewards on the host: rewards and memories of N environments.

`device` does the same in JAX. On the host, the cost of an episodic memory
follows what it holds, and the work can be done while a device or an emulator is
busy.
"""

from typing import Any, Dict, List, Optional, Union

import numpy as np
import numpy.typing as npt

from bt_acme import config as config_lib
from bt_acme.core.intrinsic import episodic_memory, rewards
from bt_acme.core.intrinsic import features as features_lib
from bt_acme.core.intrinsic import reward as reward_lib

Bools = npt.NDArray[np.bool_]
Rewards = npt.NDArray[np.float32]


class HostReward:
  """The intrinsic rewards of N environments, in NumPy.

  Attributes:
    memories: N episodic memories, one for each environment; empty if the reward
      does not read them.
    alpha: float [N], the life-long modulator of the newest observations, which
      means nothing where they were not rewarded; None if the reward has none.
  """

  def __init__(
    self,
    config: config_lib.IntrinsicConfig,
    num_environments: int,
    statistics: Optional[Any] = None,
  ):
    """Starts with empty memories.

    Args:
      config: the reward and its settings.
      num_environments: N, the number of environments.
      statistics: the running statistics to resume from, as
        `restore_statistics` takes them; None to start afresh.
    """
    self._config = config
    self._reward = rewards.for_config(config)
    self._num = num_environments
    self.alpha: Optional[npt.NDArray[Any]] = None
    self.memories: List[episodic_memory.HostMemory] = []
    if self._reward.uses_memory:
      self.memories = [
        episodic_memory.HostMemory(
          config.memory_capacity, config.embedding_size
        )
        for _ in range(num_environments)
      ]
    fields = self._reward.statistics_class._fields
    self._statistics = self._reward.statistics_class(
      *np.zeros([len(fields), num_environments])
    )
    if statistics is not None:
      self.restore_statistics(statistics)

  def take(
    self,
    features: Union[features_lib.Features, reward_lib.Rewarded],
    is_first: Bools,
    is_last: Bools,
  ) -> Rewards:
    """Rewards one observation of each environment, from what acting gives out.

    Args:
      features: the features [N, ...]; or the rewards that a device has made of
        them, whose statistics are then taken over.
      is_first: bool [N], whether an episode starts with the observation.
      is_last: bool [N], whether one ends with it.

    Returns:
      float32 [N]; 0 for an observation that is not rewarded.
    """
    if isinstance(features, reward_lib.Rewarded):
      self.alpha = features.alpha
      self._statistics = self._reward.statistics_class(
        *(np.asarray(field, np.float64) for field in features.statistics)
      )
      return np.asarray(features.reward)
    return self.step(
      features_lib.Features(*map(np.asarray, features)),
      is_first,
      reward_lib.is_rewarded(self._config, is_last),
    )

  def step(
    self,
    features: features_lib.Features,
    is_first: Bools,
    active: Optional[Bools] = None,
  ) -> Rewards:
    """Rewards one observation of each environment and remembers it.

    Args:
      features: the features of the observations, NumPy arrays [N, ...].
      is_first: bool [N], whether an episode starts with the observation.
      active: bool [N]; the other environments get 0, and their observations
        leave no trace. All are active by default.

    Returns:
      float32 [N].
    """
    if active is None:
      active = np.ones(self._num, bool)
    before = self._statistics
    rewarded = reward_lib.evaluate(
      self._reward,
      self._config,
      features_lib.Features(*(x.astype(np.float64) for x in features)),
      self._remember(features.embedding, is_first, active),
      before,
      is_first,
    )
    self._statistics = self._reward.statistics_class(
      *(
        np.where(active, after_field, before_field)
        for after_field, before_field in zip(
          rewarded.statistics, before, strict=True
        )
      )
    )
    self.alpha = rewarded.alpha
    return np.where(active, rewarded.reward, 0.0).astype(np.float32)

  def _remember(
    self, embeddings: Rewards, is_first: Bools, active: Bools
  ) -> reward_lib.Neighbors:
    """Finds the neighbors of each embedding, then remembers it.

    Args:
      embeddings: float32 [N, D].
      is_first: bool [N], where the memory is emptied first.
      active: bool [N], where there is an embedding to remember.

    Returns:
      float64 [N, k] squared distances, and int32 [N] how many they are.
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
    return reward_lib.Neighbors(squared_distances, count)

  def statistics(self) -> Any:
    """Returns copies of the statistics, float64 [N] each."""
    return self._reward.statistics_class(*(x.copy() for x in self._statistics))

  def state(self) -> Dict[str, Any]:
    """Returns the statistics, the modulator and the memories."""
    return {
      'statistics': list(self.statistics()),
      'alpha': self.alpha,
      'memories': [memory.state() for memory in self.memories],
    }

  def restore(self, state: Dict[str, Any]) -> None:
    """Goes on from a state."""
    self.restore_statistics(state['statistics'])
    self.alpha = state['alpha']
    for memory, own in zip(self.memories, state['memories'], strict=True):
      memory.restore(own)

  def restore_statistics(self, statistics: Any) -> None:
    """Resumes from the given statistics; the memories stay as they are.

    Args:
      statistics: float [N] each, or [] if all environments start from the same.

    Raises:
      ValueError: if they belong to another number of environments.
    """
    fields = [np.asarray(x, np.float64) for x in statistics]
    for field in fields:
      if field.shape not in ((), (self._num,)):
        raise ValueError(
          f'statistics of {field.size} environments cannot go on in '
          f'{self._num}: resume with as many environments per actor as before, '
          'or start in a fresh workdir.'
        )
    self._statistics = self._reward.statistics_class(
      *(np.broadcast_to(x, self._num).copy() for x in fields)
    )
