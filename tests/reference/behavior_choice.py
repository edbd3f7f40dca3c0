"""Reference of learned priorities, from whole lists of episodes."""

import math

import numpy as np


def normalized_scores(episodes, num_behaviors, window):
  """Returns the optimistic mean of each behavior, in standard deviations.

  Args:
    episodes: pairs of a behavior and its score, oldest first.
    num_behaviors: K.
    window: the number of episodes of each behavior that count.
  """
  scores = [
    [score for behavior, score in episodes if behavior == k][-window:]
    for k in range(num_behaviors)
  ]
  everything = [score for own in scores for score in own]
  if len(set(everything)) < 2:
    return np.zeros(num_behaviors)
  center = math.fsum(everything) / len(everything)
  squares = math.fsum((score - center) ** 2 for score in everything)
  deviation = math.sqrt(squares / len(everything))
  best = max(math.fsum(own) / len(own) for own in scores if own)
  normalized = []
  for own in scores:
    mean = math.fsum(own) / len(own) if own else best
    normalized.append(mean / deviation + 1 / math.sqrt(max(len(own), 1)))
  return np.array(normalized)


def probabilities(normalized, weights, *, temperature, floor):
  """Returns the probability of each behavior, from its normalized score."""
  best = max(
    u for u, weight in zip(normalized, weights, strict=True) if weight > 0
  )
  odds = [
    weight * math.exp((u - best) / temperature) if weight > 0 else 0.0
    for u, weight in zip(normalized, weights, strict=True)
  ]
  total, share = math.fsum(odds), math.fsum(weights)
  return np.array(
    [
      floor * weight / share + (1 - floor) * own / total
      for weight, own in zip(weights, odds, strict=True)
    ]
  )
