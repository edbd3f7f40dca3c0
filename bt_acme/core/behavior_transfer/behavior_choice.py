"""Learned priorities: which behavior flies, given the scores of its episodes.

Each behavior has the scores of its last W episodes. A softmax over the mean
scores prefers the behaviors that did best, and a floor keeps trying the others.
The means are divided by the standard deviation of all scores, so that the same
temperature fits rewards of any size, and a difference counts only if it is
large compared with the luck of single episodes.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

# The smallest standard deviation, relative to the largest score.
_MIN_DEVIATION = 1e-5


class Scores(NamedTuple):
  """The scores of the last W episodes of each of K behaviors.

  Attributes:
    values: float [K, W], a ring buffer; slots without an episode are 0.
    counts: int32 [K], the number of episodes of each behavior so far.
  """

  values: Floats
  counts: npt.NDArray[np.int32]


def new_scores(num_behaviors: int, window: int) -> Scores:
  """Returns scores without any episode.

  Args:
    num_behaviors: K.
    window: W, the number of episodes of each behavior that count.
  """
  return Scores(
    np.zeros([num_behaviors, window]), np.zeros([num_behaviors], np.int32)
  )


def update(scores: Scores, behavior: int, score: float) -> Scores:
  """Adds an episode; it replaces the behavior's oldest one if W are stored.

  Args:
    scores: the scores so far.
    behavior: the behavior that flew in the episode, one of K.
    score: the score of the episode.

  Returns:
    The new scores.
  """
  values, counts = scores.values.copy(), scores.counts.copy()
  values[behavior, counts[behavior] % values.shape[1]] = score
  counts[behavior] += 1
  return Scores(values, counts)


def normalized_scores(scores: Scores) -> Floats:
  """Returns an optimistic mean score of each behavior, in standard deviations.

    u_k = m_k / σ + 1 / sqrt(n_k)

  m_k is the mean of the n_k stored scores of behavior k, and σ the standard
  deviation of all stored scores. The second term is the standard error of the
  mean: behaviors are tried whose few episodes may have been unlucky. Adding a
  constant to all scores or scaling them does not change any difference.

  Args:
    scores: the scores of the behaviors.

  Returns:
    float [K]; all 0 if the stored scores are equal. For a behavior without
    episodes, m_k is the largest mean of the others and n_k is 1.
  """
  is_stored = np.arange(scores.values.shape[1]) < scores.counts[:, None]
  # Squares of huge scores would overflow.
  largest = np.max(np.abs(scores.values))
  values = scores.values / (largest or 1)  # In [-1, 1].
  num = np.maximum(np.sum(is_stored, axis=1), 1)  # [K]
  total = np.maximum(np.sum(is_stored), 1)
  center = np.sum(values) / total
  variance = np.sum(is_stored * (values - center) ** 2) / total
  if variance <= _MIN_DEVIATION**2:  # Smaller deviations are rounding errors.
    return np.zeros(len(num))
  means = np.sum(values, axis=1) / num
  is_known = scores.counts > 0
  means = np.where(is_known, means, np.max(means[is_known]))
  normalized: Floats = means / np.sqrt(variance) + 1 / np.sqrt(num)
  return normalized


def probabilities(
  scores: Scores,
  weights: Floats,
  *,
  temperature: float,
  floor: float,
) -> Floats:
  """Returns the probability that each behavior is drawn for a flight.

    p_k = φ w_k / Σ_j w_j + (1 - φ) w_k e^(u_k / τ) / Σ_j w_j e^(u_j / τ)

  u_k is the result of `normalized_scores`.

  Args:
    scores: the scores of the behaviors.
    weights: float [K], at least 0, not all 0; a behavior of weight 0 is never
      drawn.
    temperature: τ, positive; smaller values prefer the best behavior more.
    floor: φ in [0, 1], the share of draws that ignore the scores.

  Returns:
    float [K], which sum to 1.
  """
  can_fly = weights > 0
  normalized = normalized_scores(scores)
  best = np.max(np.where(can_fly, normalized, -np.inf))
  # At most 0, so that no temperature overflows.
  below = np.where(can_fly, normalized - best, 0)
  odds = weights * np.exp(below / temperature)
  learned: Floats = odds / np.sum(odds)
  return floor * weights / np.sum(weights) + (1 - floor) * learned
