"""Metrics of sampled batches that show the effect of prioritization.

Every engine logs them with the learner's metrics:

  first_visit_share: the share of the batch that had never been sampled before.
    If the share is close to 1, the learner's priority updates have no effect,
    because hardly any sequence is sampled a second time.
  priority_over_uniform: the ratio of the mean priority in the batch to the mean
    priority in the whole replay, estimated from the batch. At 1, prioritization
    has no effect: uniform sampling would give equally large priorities.
"""

import collections

import numpy as np


def priority_over_uniform(
  priorities: np.ndarray, probabilities: np.ndarray
) -> float:
  """Estimates E_sampled[p] / E_uniform[p] from a prioritized batch.

    mean_i p_i / (Σ_i p_i u_i / Σ_i u_i),   u_i = 1 / P_i

  The weights u correct the denominator for prioritized sampling. The priorities
  have just been computed by the learner and differ from the priorities behind
  P. An excessive initial priority of new sequences would increase P, but not
  the result.

  Args:
    priorities: float [B], the newly computed priorities.
    probabilities: float [B], P, the sampling probabilities of the sequences.

  Returns:
    The ratio; 1 if all priorities are 0.
  """
  weights = np.min(probabilities) / probabilities
  uniform = np.sum(priorities * weights) / np.sum(weights)
  return float(np.mean(priorities) / uniform) if uniform > 0 else 1.0


class SamplingMetrics:
  """Computes the metrics of one learner's samples, in order.

  Reverb does not report how often an item was sampled, so this class remembers
  the sampled keys.
  """

  def __init__(self, max_replay_size: int):
    # A sequence is evicted after `max_replay_size` inserts. Between its first
    # visit and its eviction, first visits of other sequences are limited to the
    # sequences already in the replay and the newly inserted ones.
    self._num_remembered = 2 * max_replay_size
    self._visited: collections.OrderedDict[int, None]
    self._visited = collections.OrderedDict()

  def state(self) -> np.ndarray:
    """Returns the remembered keys in order, uint64."""
    return np.array(list(self._visited), np.uint64)

  def restore(self, state: np.ndarray) -> None:
    """Restores a state returned by `state`."""
    self._visited = collections.OrderedDict.fromkeys(state.tolist())

  def compute(
    self,
    keys: np.ndarray,
    probabilities: np.ndarray,
    priorities: np.ndarray,
  ) -> dict[str, float]:
    """Returns the metrics of a sample by name.

    Args:
      keys: uint64 [B], the keys of the batch.
      probabilities: float [B], the sampling probabilities of the sequences.
      priorities: float [B], the priorities that the learner computed for them.
    """
    num_before = len(self._visited)
    # A repeated visit does not change the order.
    self._visited.update(dict.fromkeys(keys.tolist()))
    share = (len(self._visited) - num_before) / len(keys)
    while len(self._visited) > self._num_remembered:
      self._visited.popitem(last=False)
    return {
      'first_visit_share': share,
      'priority_over_uniform': priority_over_uniform(
        np.asarray(priorities, np.float64), probabilities
      ),
    }
