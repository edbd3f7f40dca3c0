"""Reference of the labels of a transition, and of R2D2's priorities."""

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
  x = {
    name: np.array([[getattr(step, name)] for step in steps])  # [T, 1]
    for name in ('choice', 'probability', 'reward', 'discount')
  }
  both = (np.stack(q)[:, np.newaxis],) * 2  # Online and target network.
  given = (
    x['reward'],
    learner.discount * x['discount'],
    np.ones((len(steps), 1)),
  )
  settings = {
    'trace_decay': learner.trace_decay,
    'epsilon': learner.value_rescaling_epsilon,
  }
  if learner.loss == 'q_lambda':
    targets = returns.q_lambda_targets(*both, *given, **settings)
  else:
    settings['target_policy_epsilon'] = learner.target_policy_epsilon
    taken = x['choice'], x['probability']
    targets = returns.retrace_targets(*both, *taken, *given, **settings)
  errors = []
  for t, step in enumerate(steps):
    for label in labels(
      *(step.choice, step.action, step.source),
      num_actions=num_actions,
      duplicate_flights=learner.duplicate_flights,
      behavior_labels=learner.behavior_labels,
    ):
      errors.append(targets[t, 0] - q[t][label])
  return sequence_priority(errors, max_weight=replay.max_priority_weight)


def labels(
  choice,
  action,
  source,
  *,
  num_actions,
  duplicate_flights,
  behavior_labels='both',
):
  """Returns the labels of a transition and of its duplicate."""
  if source == OWN:
    return [choice]
  if source == FLIGHT and not duplicate_flights:
    return [action]
  if choice < num_actions:
    return [choice]  # There are no extra actions.
  return {
    'both': [choice, action],
    'extra': [choice],
    'primitive': [action],
  }[behavior_labels]
