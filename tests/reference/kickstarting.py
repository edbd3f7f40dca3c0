"""Reference of kickstarting, one transition at a time."""

import math


def cross_entropy(q_values, proposal, *, temperature):
  """Returns -log of the softmax probability of an action.

  Args:
    q_values: the values of all primitive actions of one transition.
    proposal: the index of the proposed action.
    temperature: the temperature of the softmax.
  """
  best = max(q_values)
  total = math.fsum(math.exp((q - best) / temperature) for q in q_values)
  return math.log(total) - (q_values[proposal] - best) / temperature


def weight(learner_steps, *, initial, num_steps):
  """Returns the weight of the loss after some learner steps."""
  if learner_steps >= num_steps:
    return 0.0
  return initial * (num_steps - learner_steps) / num_steps
