"""Reference of the intrinsic reward in float64, one observation at a time.

Statistics are recomputed from lists of all values.
"""

import fractions
import math

import numpy as np

from tests.reference import kickstarting, network


def value_weights(count, decay):
  """Returns the weights of `count` values in the moments, newest last.

  The n-th value gets the weight max(1 / n, decay), and the earlier values share
  the rest.
  """
  weights, rest = [], 1.0
  for n in range(count, 0, -1):
    new = max(1 / n, decay)
    weights.append(rest * new)
    rest *= 1 - new
  return weights[::-1]


def mean_and_variance(values, decay=0.0):
  """Returns the weighted mean and variance."""
  weights = value_weights(len(values), decay)
  mean = math.fsum(w * x for w, x in zip(weights, values, strict=True))
  return mean, math.fsum(
    w * (x - mean) ** 2 for w, x in zip(weights, values, strict=True)
  )


def mean_and_sigma(values, unvaried='one', decay=0.0):
  """Returns mean and sigma of one environment's RND errors.

  Sigma is 1 until the errors vary. With `floor`, sigma is 1 for fewer than two
  errors and at least 1e-4 afterwards.
  """
  mean, variance = mean_and_variance(values, decay)
  sigma = math.sqrt(variance)
  if unvaried == 'floor':
    return mean, max(sigma, 1e-4) if len(values) > 1 else 1.0
  return mean, sigma if sigma > 1e-3 * abs(mean) else 1.0


def nearest_squared_distances(memory, query, k):
  """Returns the k smallest squared distances, sorted: [min(k, M')]."""
  distances = []
  for row in memory:
    distances.append(math.fsum((np.float64(row) - np.float64(query)) ** 2))
  return np.array(sorted(distances)[:k])


def mean_distance(groups, decay):
  """Returns d_m^2 from the distances to neighbors of all queries so far."""
  groups = [group for group in groups if len(group)]
  if not groups:
    return 0.0
  if not decay:
    return math.fsum(x for group in groups for x in group) / sum(
      len(group) for group in groups
    )
  mean = np.mean(groups[0])
  for group in groups[1:]:
    mean = (1 - decay) * mean + decay * np.mean(group)
  return float(mean)


def episodic_novelty(squared_distances, scale, config):
  """Returns r_episodic from the distances to k' neighbors and d_m^2."""
  if len(squared_distances) < config.min_neighbors:
    return 0.0
  total = 0.0
  for distance in squared_distances:
    normalized = distance / max(scale, 1e-8)
    normalized = max(normalized - config.cluster_distance, 0.0)
    total += config.kernel_epsilon / (normalized + config.kernel_epsilon)
  similarity = math.sqrt(total) + config.pseudo_count
  return 0.0 if similarity > config.max_similarity else 1 / similarity


def rewards(config, embeddings, errors, is_first):
  """Computes the rewards of one environment's observations.

  Args:
    config: the reward and its settings.
    embeddings: [T, D].
    errors: [T].
    is_first: bool [T].

  Returns:
    Rewards [T], d_m^2 after each observation [T], and alpha [T].
  """
  memory, error_history, distance_history = [], [], []
  result, scales, alphas = [], [], []
  for embedding, error, first in zip(embeddings, errors, is_first, strict=True):
    if first:
      memory = []
    if first and config.statistics_scope == 'episode':
      error_history, distance_history = [], []
    error_history.append(float(error))
    mean, sigma = mean_and_sigma(
      error_history, config.error_deviation, config.error_decay
    )
    distances = nearest_squared_distances(
      memory[-config.memory_capacity :], embedding, config.num_neighbors
    )
    distance_history.append(distances)
    scale = mean_distance(distance_history, config.distance_decay)
    novelty = episodic_novelty(distances, scale, config)
    memory.append(embedding)
    alpha = config.alpha_offset + (float(error) - mean) / sigma
    factor = min(max(alpha, 1.0), config.reward_scale_limit)
    result.append(
      {
        'ngu': novelty * factor,
        'rnd': float(error) / sigma,
        'constant': config.constant_reward,
      }[config.intrinsic_reward]
    )
    scales.append(scale)
    alphas.append(alpha)
  return np.array(result), np.array(scales), np.array(alphas)


def credit(episodes, config):
  """Assigns novelties to actions and to the agent's inputs.

  Args:
    episodes: for each episode, the novelties of x_0 .. x_{T-1}, and of x_T if
      `reward_observation` is `next`.
    config: the settings, of which `reward_observation` is used.

  Returns:
    For each episode, the rewards of its T actions, and the previous-reward
    inputs of its T + 1 observations: the newest reward computed before the
    observation.
  """
  result = []
  for novelties in episodes:
    rewards, inputs = [], [0.0]
    after = config.reward_observation == 'next'
    for t in range(len(novelties) - after):
      rewards.append(novelties[t + 1] if after else novelties[t])
      inputs.append(novelties[t])
    result.append((rewards, inputs))
  return result


def embed(params, observation, **scale):
  """Returns f(x), [D]."""
  return np.maximum(network.torso(params, observation, **scale), 0)


def rnd_error(params, frame, **scale):
  """Returns the squared distance between predictor and target outputs."""
  prediction = network.torso(params['rnd_predictor'], frame, **scale)
  target = network.torso(params['rnd_target'], frame, **scale)
  return math.fsum((prediction - target) ** 2)


def window_steps(length, num_steps, offset=None):
  """Returns the valid steps of a sequence that train the networks.

  Args:
    length: n, the number of valid steps.
    num_steps: L, the maximum number of returned steps.
    offset: None for the last steps; else u of 0 .. n - 1, the offset of one
      step in each of L equal parts.
  """
  if offset is None or length <= num_steps:
    return list(range(length))[-num_steps:]
  return [
    math.floor(fractions.Fraction(part * length + offset, num_steps))
    for part in range(num_steps)
  ]


def sequence_losses(
  params,
  observations,
  action,
  valid,
  *,
  frame_channels,
  num_steps,
  steps=None,
  rewards_next=False,
  **scale,
):
  """Computes inverse-dynamics loss, RND loss, L2 penalty and accuracy.

  Args:
    params: the parameters of all four parts.
    observations: [T + 1, B, H, W, C * S].
    action: [T, B].
    valid: [T, B].
    frame_channels: C.
    num_steps: the number of last valid transitions to use.
    steps: the transitions to use in each sequence, instead of the last ones.
    rewards_next: whether RND is trained on x_{t+1} instead of x_t.
    **scale: strides of the convolutions and divisor of the observations.

  Returns:
    The four values; all but the penalty are means over the used transitions.
  """
  cross_entropies, errors, right = [], [], []
  classifier = network.in_float64(params['inverse_dynamics'])
  for b in range(valid.shape[1]):
    length = int(valid[:, b].sum())
    for t in steps[b] if steps else window_steps(length, num_steps):
      embeddings = [
        embed(params['embedding'], observations[i, b], **scale)
        for i in (t, t + 1)
      ]
      logits = network.mlp(classifier, 'classifier', np.concatenate(embeddings))
      cross_entropies.append(
        kickstarting.cross_entropy(logits, action[t, b], temperature=1.0)
      )
      right.append(np.argmax(logits) == action[t, b])
      frame = observations[t + rewards_next, b][..., -frame_channels:]
      errors.append(rnd_error(params, frame, **scale))
  penalty = 0.0
  for part in ('embedding', 'inverse_dynamics'):
    for module in params[part].values():
      penalty += math.fsum(np.float64(module['w']).ravel() ** 2)
  return np.mean(cross_entropies), np.mean(errors), penalty, np.mean(right)
