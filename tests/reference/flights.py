"""Reference of flight lengths and of Alg. 1 of Campos et al. 2021."""

import math

import numpy as np

OWN, EXTRA, FLIGHT = 0, 1, 2

# zeta(mu): Euler's closed forms and published values.
ZETA = {
  1.5: 2.612375348685488,
  2.0: math.pi**2 / 6,
  3.0: 1.2020569031595943,
  4.0: math.pi**4 / 90,
}


def length_probabilities(exponent, max_length):
  """Returns P(N = n) for n = 1 .. max_length; longer flights are truncated."""
  probabilities = [n**-exponent / ZETA[exponent] for n in range(1, max_length)]
  return np.array(probabilities + [1 - math.fsum(probabilities)])


def act(
  choices,
  proposals,
  starts,
  lengths,
  behaviors,
  is_first,
  *,
  num_actions,
  extra_behaviors,
):
  """Runs Alg. 1 with given random events and decisions at each step.

  Args:
    choices: the agent's choice if the agent is in control.
    proposals: [step][k], the action proposed by each behavior.
    starts: whether a flight would start if none is in progress.
    lengths: the length of that flight.
    behaviors: the behavior of that flight.
    is_first: whether an episode starts.
    num_actions: A, the number of actions.
    extra_behaviors: the behavior that each choice from A on selects.

  Returns:
    Executed actions, labels and sources.
  """
  actions, labels, sources = [], [], []
  steps_left, flying = 0, None
  for t, choice in enumerate(choices):
    if is_first[t]:
      steps_left = 0
    if steps_left == 0 and starts[t]:
      steps_left, flying = lengths[t], behaviors[t]
    if steps_left > 0:
      steps_left -= 1
      action, source = proposals[t][flying], FLIGHT
      label = action
      if flying in extra_behaviors:
        label = num_actions + extra_behaviors.index(flying)
    elif choice >= num_actions:
      behavior = extra_behaviors[choice - num_actions]
      action, source, label = proposals[t][behavior], EXTRA, choice
    else:
      action, source, label = choice, OWN, choice
    actions.append(action)
    labels.append(label)
    sources.append(source)
  return tuple(map(np.array, (actions, labels, sources)))
