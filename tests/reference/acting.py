"""Reference of R2D2's exploration in float64."""

import numpy as np


def epsilon_of(index, num_environments, *, base, alpha):
  """Returns Ape-X's base^(1 + alpha i / (N - 1)), or base for N = 1."""
  if num_environments == 1:
    return base
  return base ** (1 + alpha * index / (num_environments - 1))


def choice_probabilities(q_values, epsilon):
  """Returns choice probabilities; the greedy choice also occurs at random."""
  num_choices = len(q_values)
  probabilities = []
  for choice in range(num_choices):
    by_chance = epsilon / num_choices
    by_greed = 1 - epsilon if choice == np.argmax(q_values) else 0.0
    probabilities.append(by_chance + by_greed)
  return np.array(probabilities)


def preferences(q_values, margin, num_actions):
  """Returns values in which extra actions lead by a share of the largest."""
  lead = margin * max(abs(q) for q in q_values)
  return np.array(
    [q + (lead if a >= num_actions else 0.0) for a, q in enumerate(q_values)]
  )


def expanded_policy(q_values, temperature, num_actions):
  """Returns the probabilities of the best action and the extra actions."""
  own = max(range(num_actions), key=lambda a: (q_values[a], -a))
  candidates = [own, *range(num_actions, len(q_values))]
  scale = max(abs(q) for q in q_values) or 1.0
  best = max(q_values[a] for a in candidates)
  odds = np.zeros(len(q_values))
  for a in candidates:
    odds[a] = np.exp((q_values[a] - best) / (temperature * scale))
  return odds / odds.sum()
