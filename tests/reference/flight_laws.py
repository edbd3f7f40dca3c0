"""Reference of the laws of flights, from whole lists, in float64."""

import math


def jump_start_shares(returns, lengths, *, rate, tolerance, window):
  """Returns pairs of the behavior's share and the mean length, per episode.

  Args:
    returns: the return of each episode.
    lengths: the length of each episode.
    rate: the relative change of the share.
    tolerance: how far the mean return may fall below the best one.
    window: the number of recent episodes in a mean.
  """
  share, mean_return, mean_length, means, found = 1.0, 0.0, 0.0, [], []
  for n, (total, length) in enumerate(zip(returns, lengths, strict=True), 1):
    num = min(n, window)
    mean_return = ((num - 1) * mean_return + total) / num
    mean_length = ((num - 1) * mean_length + length) / num
    if n >= window:
      means.append(mean_return)
      if mean_return > max(means) - tolerance * abs(max(means)):
        share = max(1e-3, share * (1 - rate))
      else:
        share = min(1.0, share / (1 - rate))
    found.append((share, mean_length))
  return found


def promise_discrepancy(values, rewards, value, *, discount):
  """Returns |V(s_{t-k}) - the discounted rewards and value since then|."""
  k = len(values)
  terms = [discount**i * reward for i, reward in enumerate(rewards)]
  return abs(values[0] - math.fsum(terms) - discount**k * value)


def trigger_probabilities(signals, rate):
  """Returns the probability of a flight at each signal (Pislar, Alg. 1).

  Args:
    signals: the signals of the steps at which a flight can start.
    rate: the target rate.
  """
  mean = variance = mean_exponential = 0.0
  probabilities = []
  for n, x in enumerate(signals, 1):
    tau = min(n, 100 / rate)
    mean = (1 - 1 / tau) * mean + x / tau
    variance = (1 - 1 / tau) * variance + (x - mean) ** 2 / tau
    z = (x - mean) / math.sqrt(variance) if variance > 0 else 0.0
    exponential = math.exp(min(z, 50.0))
    mean_exponential = (1 - 1 / tau) * mean_exponential + exponential / tau
    probabilities.append(min(1.0, rate * exponential / mean_exponential))
  return probabilities


def agent_leads(q_values, choice, *, margin):
  """Returns whether the best choice exceeds another one by the margin."""
  largest = max(abs(q) for q in q_values)
  return max(q_values) - q_values[choice] > margin * largest
