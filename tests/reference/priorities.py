"""Reference of the labels of a transition, and of R2D2's priorities."""

import numpy as np

from tests.reference import value_rescaling

OWN, EXTRA, FLIGHT = 0, 1, 2


def sequence_priority(errors, *, max_weight):
  """Returns eta max |delta| + (1 - eta) mean |delta|, or 0 without errors."""
  if not len(errors):
    return 0.0
  magnitudes = [abs(float(error)) for error in errors]
  mean = sum(magnitudes) / len(magnitudes)
  return np.float64(max_weight * max(magnitudes) + (1 - max_weight) * mean)


def new_sequence_priority(steps, following, *, learner, replay, num_actions):
  """Computes the actor's own priority of a sequence, in the forward view.

  Peng's Q(lambda) is the average (1 - lambda) sum_k lambda^(k-1) G^(k) of
  k-step returns; the last return has all of the remaining weight. Retrace is
  Q + sum_s gamma^(s-t) (prod c) delta_s.

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
  e = learner.value_rescaling_epsilon
  x = value_rescaling.invert(np.stack(q), e)
  gammas = [learner.discount * float(step.discount) for step in steps]
  errors = []
  for t, step in enumerate(steps):
    if learner.loss == 'q_lambda':
      target = _average_return(steps, x, gammas, t, learner.trace_decay)
    else:
      target = _retrace_return(steps, q, x, gammas, t, learner)
    target = value_rescaling.rescale(target, e)
    for label in labels(
      *(step.choice, step.action, step.source),
      num_actions=num_actions,
      duplicate_flights=learner.duplicate_flights,
      behavior_labels=learner.behavior_labels,
    ):
      errors.append(target - q[t][label])
  return sequence_priority(errors, max_weight=replay.max_priority_weight)


def _average_return(steps, x, gammas, t, trace_decay):
  n, total, rewards, discount = len(steps), 0.0, 0.0, 1.0
  for k in range(1, n - t + 1):
    rewards += discount * float(steps[t + k - 1].reward)
    discount *= gammas[t + k - 1]
    weight = trace_decay ** (k - 1)
    if k < n - t:
      weight *= 1 - trace_decay
    total += weight * (rewards + discount * np.max(x[t + k]))
  return total


def _retrace_return(steps, q, x, gammas, t, learner):
  def policy(i):
    probabilities = np.full(
      len(q[i]), learner.target_policy_epsilon / len(q[i])
    )
    probabilities[np.argmax(q[i])] += 1 - learner.target_policy_epsilon
    return probabilities

  total, factor = x[t][steps[t].choice], 1.0
  for s in range(t, len(steps)):
    taken = steps[s].choice
    if s > t:
      ratio = policy(s)[taken] / float(steps[s].probability)
      factor *= gammas[s - 1] * learner.trace_decay * min(1.0, ratio)
    value = np.sum(policy(s + 1) * x[s + 1])
    delta = float(steps[s].reward) + gammas[s] * value - x[s][taken]
    total += factor * delta
  return total


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
