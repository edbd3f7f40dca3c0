"""Metrics of each learner step's sample: whether the replay prioritizes.

Every engine logs them with the learner's metrics:

  first_visit_share: how much of the batch had never been sampled before. If it
    is close to 1, the priorities that the learner updates decide nothing,
    because hardly any sequence is sampled a second time.
  priority_over_uniform: how much larger the batch's mean priority is than that
    of the whole replay, estimated from the batch. At 1, prioritization has no
    effect: uniform sampling would find as much to learn from.
"""

import collections
from typing import Deque, Dict, Set

import numpy as np


def priority_over_uniform(
  priorities: np.ndarray, probabilities: np.ndarray
) -> float:
  """Estimates E_sampled[p] / E_uniform[p] from a prioritized batch.

    mean_i p_i / (Σ_i p_i u_i / Σ_i u_i),   u_i = 1 / P_i

  u corrects the denominator for the sampling. The priorities are those that the
  learner has just computed, not those that P came from: an initial priority of
  all new sequences that is far too large makes P large, but finds nothing.

  Args:
    priorities: float [B], the newly computed priorities.
    probabilities: float [B], P, the probability with which each was drawn.

  Returns:
    The ratio; 1 if all priorities are 0.
  """
  weights = np.min(probabilities) / probabilities
  uniform = np.sum(priorities * weights) / np.sum(weights)
  return float(np.mean(priorities) / uniform) if uniform > 0 else 1.0


class SamplingMetrics:
  """Computes the metrics of one learner's samples, in order.

  Reverb does not say how often an item was sampled, so the keys that were are
  remembered here.
  """

  def __init__(self, max_replay_size: int):
    # A sequence leaves the replay after `max_replay_size` inserts. From its
    # first visit until then, no more others can have theirs than were in the
    # replay already and came after it.
    self._num_remembered = 2 * max_replay_size
    self._visited: Set[int] = set()
    self._order: Deque[int] = collections.deque()

  def state(self) -> np.ndarray:
    """Returns the keys that are remembered, in order, uint64."""
    return np.array(self._order, np.uint64)

  def restore(self, state: np.ndarray) -> None:
    """Goes on from a state."""
    self._order = collections.deque(state.tolist())
    self._visited = set(self._order)

  def compute(
    self,
    keys: np.ndarray,
    probabilities: np.ndarray,
    priorities: np.ndarray,
  ) -> Dict[str, float]:
    """Returns the metrics of a sample by name.

    Args:
      keys: uint64 [B], those of the batch that the learner learned from.
      probabilities: float [B], with which they were drawn.
      priorities: float [B], which the learner then gave them.
    """
    num_before = len(self._order)
    for key in keys.tolist():
      if key not in self._visited:
        self._visited.add(key)
        self._order.append(key)
    share = (len(self._order) - num_before) / len(keys)
    while len(self._order) > self._num_remembered:
      self._visited.remove(self._order.popleft())
    return {
      'first_visit_share': share,
      'priority_over_uniform': priority_over_uniform(
        np.asarray(priorities, np.float64), probabilities
      ),
    }
