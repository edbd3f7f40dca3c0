"""Reference of labels, loss, gradient and priorities, one step at a time."""

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
      for label in labels(*taken, learner, num_actions):
        error = targets[t, b] - q_online[t, b, label]
        errors.append(error)
        loss += 0.5 * error**2 / batch_size
        gradient[t, b, label] -= error / batch_size
    result.append(sequence_priority(errors, max_weight=max_weight))
  return loss, gradient, np.array(result)
