"""Reference of learned priorities, from whole lists of episodes."""

import math

import numpy as np


def mean_scores(episodes, num_behaviors, window):
  """Returns the mean score of each behavior's last episodes.

  Args:
    episodes: pairs of a behavior and its score, oldest first.
    num_behaviors: K.
    window: the number of episodes of each behavior that count.
  """
  means = []
  for k in range(num_behaviors):
    scores = [score for behavior, score in episodes if behavior == k][-window:]
    means.append(math.fsum(scores) / len(scores) if scores else None)
  known = [mean for mean in means if mean is not None]
  best = max(known) if known else 0.0
  return np.array([best if mean is None else mean for mean in means])


def probabilities(means, weights, *, temperature, floor):
  """Returns the probability of each behavior, from its mean score."""
  flying = [k for k, weight in enumerate(weights) if weight > 0]
  scale = max(abs(means[k]) for k in flying)
  odds = {}
  for k in flying:
    z = means[k] / scale / temperature if scale else 0.0
    odds[k] = weights[k] * math.exp(z)
  total = math.fsum(odds.values())
  share = math.fsum(weights)
  return np.array(
    [
      floor * weight / share + (1 - floor) * odds.get(k, 0.0) / total
      for k, weight in enumerate(weights)
    ]
  )
