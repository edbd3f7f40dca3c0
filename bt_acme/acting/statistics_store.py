"""The owner of the running statistics of all environments, beside the learner.

The statistics belong to the intrinsic reward. Whatever computes the reward (an
actor's `core/intrinsic/host.py`, or the inference server's device) has a
working copy of them, and actors report it here, so that the statistics are part
of every checkpoint and of the behavior that is exported. They are kept per
environment, so that a run can resume with another group size. The formulas are
in `core/intrinsic`.
"""

import threading
from typing import Any, Dict, List, Mapping, Optional, Sequence

import numpy as np

from bt_acme import assembly

# A NamedTuple of arrays, such as the core's `IntrinsicStatistics`.
Statistics = Any
# For each environment of the run, a NamedTuple of float64 [].
_ByEnvironment = Dict[int, Statistics]
_Saved = Mapping[str, Mapping[str, Sequence[float]]]


class StatisticsStore:
  """Keeps the newest statistics of each environment; safe between threads."""

  def __init__(self, statistics_class: Any):
    """Starts empty.

    Args:
      statistics_class: the reward's `Reward.statistics_class`.
    """
    self._class = statistics_class
    self._lock = threading.Lock()
    self._statistics: _ByEnvironment = {}

  def put(self, first_environment: int, statistics: Statistics) -> None:
    """Takes the statistics of consecutive environments.

    Args:
      first_environment: index in the whole run of the first of them.
      statistics: their running statistics, float [N] each.
    """
    split = self._split(int(first_environment), statistics)
    with self._lock:
      self._statistics.update(split)

  def get(
    self, first_environment: int, num_environments: int
  ) -> Optional[Statistics]:
    """Returns what `put` took last for N environments, in whichever groups.

    Args:
      first_environment: index in the whole run of the first of them.
      num_environments: N, how many they are.

    Returns:
      Float64 [N] each; None if one of the environments has none.
    """
    indices = range(first_environment, first_environment + num_environments)
    with self._lock:
      if not all(i in self._statistics for i in indices):
        return None
      return self._join([self._statistics[i] for i in indices])

  def merged(self) -> Optional[Statistics]:
    """Returns the statistics of all environments as one; None without any."""
    with self._lock:
      in_order = [one for _, one in sorted(self._statistics.items())]
    return self._join(in_order).merged() if in_order else None

  def save(self) -> _Saved:
    """Returns all statistics as JSON can hold them, for a checkpoint."""
    with self._lock:
      return {
        str(index): {k: [float(v)] for k, v in one._asdict().items()}
        for index, one in self._statistics.items()
      }

  def restore(self, saved: _Saved) -> None:
    """Replaces all statistics by those that `save` returned."""
    statistics: _ByEnvironment = {}
    # Older checkpoints have one entry for a whole group of environments.
    for first, fields in saved.items():
      statistics.update(self._split(int(first), self._class(**fields)))
    with self._lock:
      self._statistics = statistics

  def _split(self, first: int, statistics: Statistics) -> _ByEnvironment:
    """Takes statistics [N] apart, those of environment `first` and on."""
    fields = [np.asarray(x, np.float64) for x in statistics]
    return {
      first + i: self._class(*one)
      for i, one in enumerate(zip(*fields, strict=True))
    }

  def _join(self, statistics: List[Statistics]) -> Statistics:
    """Puts the statistics of N environments together, float64 [N] each."""
    return self._class(
      *(np.stack(fields) for fields in zip(*statistics, strict=True))
    )


def make_store(agent: assembly.Agent) -> StatisticsStore:
  """Makes the store of an agent.

  Without an intrinsic reward there are no statistics, and it stays empty.
  """
  intrinsic = agent.intrinsic
  return StatisticsStore(intrinsic and intrinsic.reward.statistics_class)


def saved(
  agent: assembly.Agent, values: Mapping[str, _Saved]
) -> Optional[Statistics]:
  """Returns the statistics of all environments as one; None without any.

  Args:
    agent: the agent that learned.
    values: the `values` that `Learner.save` returned.
  """
  store = make_store(agent)
  store.restore(values['statistics'])
  return store.merged()
