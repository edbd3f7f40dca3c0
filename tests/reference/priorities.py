"""Reference of the labels of a transition, and of R2D2's priorities."""

import types

import numpy as np

from tests.reference import returns

OWN, EXTRA, FLIGHT = 0, 1, 2


def sequence_priority(errors, *, max_weight):
  """Returns eta max |delta| + (1 - eta) mean |delta|, or 0 without errors."""
  if not len(errors):
    return 0.0
  magnitudes = [abs(float(error)) for error in errors]
  mean = sum(magnitudes) / len(magnitudes)
  return np.float64(max_weight * max(magnitudes) + (1 - max_weight) * mean)


def new_sequence_priority(steps, following, *, learner, replay, num_actions):
  """Computes the actor's own priority of a sequence.

  Args:
    steps: the transitions of the sequence, with `q_values`.
    following: Q-values after the last step; None at the end of an episode.
    learner: the settings of the learner.
    replay: the settings of the replay.
    num_actions: A, the number of actions.

  Returns:
    The priority; None if no error is known.
  """
  if steps[0].prev_action != -1:  # Otherwise there is no burn-in.
    steps = steps[replay.burn_in_length :]
  q = [np.float64(step.q_values) for step in steps]
  if following is not None:
    q.append(np.float64(following))
  elif steps[-1].discount == 0:
    q.append(np.zeros_like(q[0]))
  else:
    steps = steps[:-1]
  if not steps:
    return None
  names = 'choice', 'probability', 'reward', 'discount'
  columns = (np.array([[getattr(x, name)] for x in steps]) for name in names)
  batch = types.SimpleNamespace(
    **dict(zip(names, columns, strict=True)), valid=np.ones((len(steps), 1))
  )
  both = (np.stack(q)[:, np.newaxis],) * 2  # Online and target network.
  targets = returns.targets(learner.loss, *both, batch, learner)
  errors = [
    targets[t, 0] - q[t][label]
    for t, x in enumerate(steps)
    for label in labels(x.choice, x.action, x.source, learner, num_actions)
  ]
  return sequence_priority(errors, max_weight=replay.max_priority_weight)


def labels(choice, action, source, learner, num_actions):
  """Returns the labels of a transition and of its duplicate."""
  if source == OWN:
    return [choice]
  if source == FLIGHT and not learner.duplicate_flights:
    return [action]
  if choice < num_actions:
    return [choice]  # There are no extra actions.
  return {
    'both': [choice, action],
    'extra': [choice],
    'primitive': [action],
  }[learner.behavior_labels]
