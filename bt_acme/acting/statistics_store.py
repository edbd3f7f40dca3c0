"""Stores the running statistics of all environments in the learner's process.

The statistics belong to the intrinsic reward. The component that computes the
reward (`core/intrinsic/host_reward.py` in an actor, `device_reward.py` in the
inference server) has a working copy, which actors report to this store. The
statistics are therefore part of every checkpoint and of every exported
behavior. They are stored per environment, so that a run can resume with another
group size. The formulas are in `core/intrinsic`.
"""

import threading
from collections.abc import Mapping, Sequence

import numpy as np

from bt_acme.core.intrinsic import reward_statistics as reward_lib

Statistics = reward_lib.IntrinsicStatistics
# For each environment of the run, statistics of float64 [].
_ByEnvironment = dict[int, Statistics]
_Saved = Mapping[str, Mapping[str, Sequence[float]]]


class StatisticsStore:
  """Stores the newest statistics of each environment; thread-safe."""

  def __init__(self) -> None:
    """Initializes an empty store."""
    self._lock = threading.Lock()
    self._statistics: _ByEnvironment = {}

  def put(self, first_environment: int, statistics: Statistics) -> None:
    """Stores the statistics of consecutive environments.

    Args:
      first_environment: index of the first environment in the whole run.
      statistics: the running statistics of N environments, float [N] each.
    """
    split = self._split(int(first_environment), statistics)
    with self._lock:
      self._statistics.update(split)

  def get(
    self, first_environment: int, num_environments: int
  ) -> Statistics | None:
    """Returns the newest statistics of N consecutive environments.

    Args:
      first_environment: index of the first environment in the whole run.
      num_environments: N, the number of environments.

    Returns:
      Float64 [N] each; None if statistics of any environment are missing.
    """
    indices = range(first_environment, first_environment + num_environments)
    with self._lock:
      if not all(i in self._statistics for i in indices):
        return None
      return self._join([self._statistics[i] for i in indices])

  def merged(self) -> Statistics | None:
    """Merges the statistics of all environments; None if there are none."""
    with self._lock:
      in_order = [one for _, one in sorted(self._statistics.items())]
    return self._join(in_order).merged() if in_order else None

  def save(self) -> _Saved:
    """Returns all statistics as JSON-serializable values for a checkpoint."""
    with self._lock:
      return {
        str(index): {k: [float(v)] for k, v in one._asdict().items()}
        for index, one in self._statistics.items()
      }

  def restore(self, saved: _Saved) -> None:
    """Restores the statistics returned by `save`, replacing all others."""
    statistics: _ByEnvironment = {}
    # Older checkpoints have one entry for a whole group of environments.
    for first, fields in saved.items():
      statistics.update(self._split(int(first), Statistics(**fields)))
    with self._lock:
      self._statistics = statistics

  def _split(self, first: int, statistics: Statistics) -> _ByEnvironment:
    """Splits statistics [N] by environment, starting at index `first`."""
    fields = [np.asarray(x, np.float64) for x in statistics]
    return {
      first + i: Statistics(*one)
      for i, one in enumerate(zip(*fields, strict=True))
    }

  def _join(self, statistics: list[Statistics]) -> Statistics:
    """Stacks the statistics of N environments, float64 [N] each."""
    return Statistics(
      *(np.stack(fields) for fields in zip(*statistics, strict=True))
    )
