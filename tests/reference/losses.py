"""Reference of loss, gradient and priorities, one transition at a time."""

import numpy as np

from tests.reference import priorities


def trained(prev_action, valid, burn_in_length):
  """Returns which steps the loss covers, [T, B].

  Args:
    prev_action: [T + 1, B]; -1 where an episode starts.
    valid: [T, B].
    burn_in_length: the burn-in of sequences that do not start an episode.
  """
  result = np.array(valid)
  for b in range(valid.shape[1]):
    if prev_action[0, b] != -1:
      result[:burn_in_length, b] = 0
  return result


def loss_gradient_priorities(
  q_online, targets, batch, trained, *, learner, num_actions, max_weight
):
  """Computes L = mean_B 1/2 sum (own error^2 + duplicate's error^2).

  Returns:
    The loss, its gradient with respect to q_online, and priorities [B].
  """
  num_steps, batch_size = batch.choice.shape
  loss = 0.0
  gradient = np.zeros(q_online.shape)
  result = []
  for b in range(batch_size):
    errors = []
    for t in range(num_steps):
      if not trained[t, b]:
        continue
      taken = (x[t, b] for x in (batch.choice, batch.action, batch.source))
      for label in priorities.labels(*taken, learner, num_actions):
        error = targets[t, b] - q_online[t, b, label]
        errors.append(error)
        loss += 0.5 * error**2 / batch_size
        gradient[t, b, label] -= error / batch_size
    result.append(priorities.sequence_priority(errors, max_weight=max_weight))
  return loss, gradient, np.array(result)
