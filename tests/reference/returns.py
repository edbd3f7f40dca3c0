"""Reference of Peng's Q(lambda) and Retrace, one sequence and step at a time.

Sequences are first truncated to their valid transitions, so that the papers'
recursions need no mask. Later rows of the result are NaN.
"""

import numpy as np

from tests.reference import value_rescaling


def _real_length(valid):
  """Returns the number of valid transitions of a sequence, which come first."""
  length = 0
  while length < len(valid) and valid[length]:
    length += 1
  assert not np.any(valid[length:])
  return length


def q_lambda_targets(
  q_online, q_target, reward, discount_t, valid, *, trace_decay, epsilon
):
  """Computes y = h(G) [T, B] from q [T + 1, B, A'] and others [T, B]."""
  targets = np.full(reward.shape, np.nan)
  for b in range(reward.shape[1]):
    length = _real_length(valid[:, b])
    values = []
    for t in range(length + 1):
      best = int(np.argmax(q_online[t, b]))
      values.append(value_rescaling.invert(q_target[t, b, best], epsilon))
    following = None
    for t in reversed(range(length)):
      if following is None:
        bootstrap = values[t + 1]
      else:
        bootstrap = (1 - trace_decay) * values[t + 1] + trace_decay * following
      following = reward[t, b] + discount_t[t, b] * bootstrap
      targets[t, b] = value_rescaling.rescale(following, epsilon)
  return targets


def _policy(q_values, policy_epsilon):
  num_actions = len(q_values)
  policy = np.full(num_actions, policy_epsilon / num_actions)
  policy[np.argmax(q_values)] += 1 - policy_epsilon
  return policy


def retrace_targets(
  q_online,
  q_target,
  action,
  probability,
  reward,
  discount_t,
  valid,
  *,
  trace_decay,
  target_policy_epsilon,
  epsilon,
):
  """Computes y = h(G) [T, B] from q [T + 1, B, A] and others [T, B]."""
  targets = np.full(reward.shape, np.nan)
  for b in range(reward.shape[1]):
    length = _real_length(valid[:, b])
    following = None
    for t in reversed(range(length)):
      policy = _policy(q_online[t + 1, b], target_policy_epsilon)
      values = value_rescaling.invert(q_target[t + 1, b], epsilon)
      bootstrap = np.sum(policy * values)
      if following is not None:
        a = action[t + 1, b]
        trace = trace_decay * min(1.0, policy[a] / probability[t + 1, b])
        bootstrap += trace * (following - values[a])
      following = reward[t, b] + discount_t[t, b] * bootstrap
      targets[t, b] = value_rescaling.rescale(following, epsilon)
  return targets
