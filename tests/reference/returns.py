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


def _policy(q_values, policy_epsilon):
  num_actions = len(q_values)
  policy = np.full(num_actions, policy_epsilon / num_actions)
  policy[np.argmax(q_values)] += 1 - policy_epsilon
  return policy


def targets(loss, q_online, q_target, batch, settings):
  """Computes y = h(G), [T, B].

  Args:
    loss: `q_lambda` or `retrace`.
    q_online: [T + 1, B, A'].
    q_target: [T + 1, B, A'].
    batch: the transitions, with arrays [T, B].
    settings: the settings of the learner.
  """
  decay, epsilon = settings.trace_decay, settings.value_rescaling_epsilon
  chooser = q_online if settings.double_q else q_target
  result = np.full(batch.reward.shape, np.nan)
  for b in range(batch.reward.shape[1]):
    following = None
    for t in reversed(range(_real_length(batch.valid[:, b]))):
      values = value_rescaling.invert(q_target[t + 1, b], epsilon)
      if loss == 'q_lambda':
        bootstrap = values[np.argmax(chooser[t + 1, b])]
        if following is not None:
          bootstrap = (1 - decay) * bootstrap + decay * following
      else:
        policy = _policy(q_online[t + 1, b], settings.target_policy_epsilon)
        bootstrap = np.sum(policy * values)
        if following is not None:
          a = batch.choice[t + 1, b]
          trace = decay * min(1.0, policy[a] / batch.probability[t + 1, b])
          bootstrap += trace * (following - values[a])
      discount = settings.discount * batch.discount[t, b]
      following = batch.reward[t, b] + discount * bootstrap
      result[t, b] = value_rescaling.rescale(following, epsilon)
  return result
