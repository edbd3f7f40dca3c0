"""Learned priorities: which behavior flies, given the scores of its episodes.

Each behavior has the scores of its last W episodes. A softmax over the mean
scores prefers the behaviors that did best, and a floor keeps trying the others.
The softmax divides the means by the largest magnitude among them, so that the
same temperature fits rewards of any size.

All functions take and return either NumPy or JAX arrays.
"""

from typing import Any, NamedTuple

import numpy as np

from bt_acme.core import arrays


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


def mean_scores(scores: Scores) -> arrays.Array:
  """Returns the mean score of each behavior, float [K].

  A behavior without an episode gets the largest mean of the others, so that it
  is tried; if no behavior has an episode, all means are 0.
  """
  xp = arrays.namespace(scores.values)
  window = scores.values.shape[1]
  num = xp.clip(scores.counts, 1, window).astype(scores.values.dtype)  # [K]
  # Dividing first keeps the sum of huge scores finite.
  means = xp.sum(scores.values / num[:, None], axis=1)
  is_known = scores.counts > 0
  largest = xp.max(xp.where(is_known, means, -xp.inf))
  largest = xp.where(xp.any(is_known), largest, 0)
  return xp.where(is_known, means, largest).astype(scores.values.dtype)


def probabilities(
  scores: Scores,
  weights: arrays.Array,
  *,
  temperature: float,
  floor: float,
) -> arrays.Array:
  """Returns the probability that each behavior is drawn for a flight.

    p_k = φ w_k / Σ_j w_j + (1 - φ) w_k e^(z_k) / Σ_j w_j e^(z_j)
    z_k = m_k / (τ max_j |m_j|)

  m_k is the mean score of behavior k. The largest magnitude is taken over the
  behaviors with a positive weight. If it is 0, all z_k are 0 and the
  probabilities follow the weights alone.

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
  means = xp.where(can_fly, mean_scores(scores), 0)
  scale = xp.max(xp.abs(means))
  relative = means / xp.where(scale > 0, scale, 1)  # In [-1, 1].
  best = xp.max(xp.where(can_fly, relative, -xp.inf))
  # At most 0, so that no temperature overflows.
  below = xp.where(can_fly, relative - best, 0)
  odds = weights * xp.exp(below / temperature)
  learned = odds / xp.sum(odds)
  return floor * weights / xp.sum(weights) + (1 - floor) * learned
