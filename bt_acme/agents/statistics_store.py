"""The running statistics of all environments, kept beside the learner.

Actors report the statistics of their intrinsic reward here, so that they are
part of every checkpoint and of the behavior that is exported. They are kept for
each environment by itself, so that a run can go on with its environments in
groups of another size. The formulas are in `core/intrinsic`.
"""

import threading
from typing import Any, Dict, Iterable, List, Mapping, Optional

import numpy as np

from bt_acme import assembly

# By environment of the run, a NamedTuple of float64 [].
_ByEnvironment = Dict[int, Any]


class StatisticsStore:
  """Keeps the newest statistics of each environment; safe between threads."""

  def __init__(self, statistics_class: Any):
    """Starts empty.

    Args:
      statistics_class: of the reward, as `Reward.statistics_class` describes.
    """
    self._class = statistics_class
    self._lock = threading.Lock()
    self._statistics: _ByEnvironment = {}

  def put(self, first_environment: int, statistics: Any) -> None:
    """Takes the statistics of consecutive environments.

    Args:
      first_environment: index of the first of them in the whole run.
      statistics: float [N] each.
    """
    split = self._split(int(first_environment), statistics)
    with self._lock:
      self._statistics.update(split)

  def get(self, first_environment: int, num_environments: int) -> Optional[Any]:
    """Returns what `put` took last for N environments, in whichever groups.

    Args:
      first_environment: index of the first of them in the whole run.
      num_environments: N.

    Returns:
      Float64 [N] each; None if one of the environments has none.
    """
    indices = range(first_environment, first_environment + num_environments)
    with self._lock:
      if not all(i in self._statistics for i in indices):
        return None
      return self._join([self._statistics[i] for i in indices])

  def merged(self) -> Optional[Any]:
    """Returns the statistics of all environments as one; None without any."""
    with self._lock:
      in_order = [one for _, one in sorted(self._statistics.items())]
    return self._join(in_order).merged() if in_order else None

  def save(self) -> Mapping[str, Any]:
    """Returns all statistics as JSON can hold them, for a checkpoint."""
    with self._lock:
      return {
        str(index): {k: [float(v)] for k, v in one._asdict().items()}
        for index, one in self._statistics.items()
      }

  def restore(self, saved: Mapping[str, Any]) -> None:
    """Replaces all statistics by those that `save` returned."""
    statistics: _ByEnvironment = {}
    # Older checkpoints have one entry for a whole group of environments.
    for first, fields in saved.items():
      statistics.update(self._split(int(first), self._class(**fields)))
    with self._lock:
      self._statistics = statistics

  def _split(self, first: int, statistics: Iterable[Any]) -> _ByEnvironment:
    """Takes statistics [N] apart, those of environment `first` and on."""
    fields = [np.asarray(x, np.float64) for x in statistics]
    return {
      first + i: self._class(*one)
      for i, one in enumerate(zip(*fields, strict=True))
    }

  def _join(self, statistics: List[Any]) -> Any:
    """Puts the statistics of N environments together, float64 [N] each."""
    return self._class(
      *(np.stack(fields) for fields in zip(*statistics, strict=True))
    )


def of(agent: assembly.Agent) -> StatisticsStore:
  """Makes the store of an agent.

  Without an intrinsic reward there are no statistics, and it stays empty.
  """
  intrinsic = agent.intrinsic
  return StatisticsStore(intrinsic and intrinsic.reward.statistics_class)


def saved(agent: assembly.Agent, values: Mapping[str, Any]) -> Optional[Any]:
  """Returns the statistics of all environments as one; None without any.

  Args:
    agent: what learned.
    values: those that `Learner.save` returned.
  """
  store = of(agent)
  store.restore(values['statistics'])
  return store.merged()
