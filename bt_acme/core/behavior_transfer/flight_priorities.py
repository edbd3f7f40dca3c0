"""Learned priorities: which behavior flies, given the scores of its episodes.

Each behavior has the scores of its last W episodes. A softmax over the mean
scores prefers the behaviors that did best, and a floor keeps trying the others.
The means are divided by the standard deviation of all scores, so that the same
temperature fits rewards of any size, and a difference counts only if it is
large compared with the luck of single episodes.

All functions take and return either NumPy or JAX arrays.
"""

from typing import Any, NamedTuple

import numpy as np

from bt_acme.core import arrays

# The smallest standard deviation, relative to the largest score.
_MIN_DEVIATION = 1e-5


class Scores(NamedTuple):
  """The scores of the last W episodes of each of K behaviors.

  Attributes:
    values: float [K, W], a ring buffer; slots without an episode are 0.
    counts: int32 [K], the number of episodes of each behavior so far.
  """

  values: arrays.Array
  counts: arrays.Array


def new_scores(num_behaviors: int, window: int) -> Scores:
  """Returns NumPy scores without any episode.

  Args:
    num_behaviors: K.
    window: W, the number of episodes of each behavior that count.
  """
  return Scores(
    np.zeros([num_behaviors, window]), np.zeros([num_behaviors], np.int32)
  )


def update(scores: Scores, behavior: Any, score: Any) -> Scores:
  """Adds an episode; it replaces the behavior's oldest one if W are stored.

  Args:
    scores: the scores so far.
    behavior: int32 [], the behavior that flew in the episode, one of K.
    score: float [], the score of the episode.

  Returns:
    The new scores.
  """
  xp = arrays.namespace(scores.values)
  num_behaviors, window = scores.values.shape
  is_behavior = xp.arange(num_behaviors) == behavior  # [K]
  is_slot = xp.arange(window) == (scores.counts % window)[:, None]  # [K, W]
  values = xp.where(is_behavior[:, None] & is_slot, score, scores.values)
  counts = xp.where(is_behavior, scores.counts + 1, scores.counts)
  return Scores(
    values.astype(scores.values.dtype), counts.astype(scores.counts.dtype)
  )


def normalized_scores(scores: Scores) -> arrays.Array:
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
  xp = arrays.namespace(scores.values)
  dtype, window = scores.values.dtype, scores.values.shape[1]
  is_stored = (xp.arange(window) < scores.counts[:, None]).astype(dtype)
  # Squares of huge scores would overflow.
  largest = xp.max(xp.abs(scores.values))
  values = scores.values / xp.where(largest > 0, largest, 1)  # In [-1, 1].
  num = xp.maximum(xp.sum(is_stored, axis=1), 1)  # [K]
  means = xp.sum(values, axis=1) / num
  is_known = scores.counts > 0
  best = xp.max(xp.where(is_known, means, -xp.inf))
  means = xp.where(is_known, means, best)
  total = xp.maximum(xp.sum(is_stored), 1)
  center = xp.sum(values) / total
  variance = xp.sum(is_stored * (values - center) ** 2) / total
  # Smaller deviations are rounding errors.
  varies = variance > _MIN_DEVIATION**2
  deviation = xp.sqrt(xp.where(varies, variance, 1))
  normalized = means / deviation + 1 / xp.sqrt(num)
  return xp.where(varies, normalized, 0).astype(dtype)


def probabilities(
  scores: Scores,
  weights: arrays.Array,
  *,
  temperature: float,
  floor: float,
) -> arrays.Array:
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
  xp = arrays.namespace(scores.values)
  can_fly = weights > 0
  normalized = normalized_scores(scores)
  best = xp.max(xp.where(can_fly, normalized, -xp.inf))
  # At most 0, so that no temperature overflows.
  below = xp.where(can_fly, normalized - best, 0)
  odds = weights * xp.exp(below / temperature)
  learned = odds / xp.sum(odds)
  return floor * weights / xp.sum(weights) + (1 - floor) * learned
