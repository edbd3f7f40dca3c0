"""A law whose flights start where the agent's values broke their promise.

Flights start where the agent's values of k steps ago disagree most with the
rewards since then and the value now. Homeostasis turns this signal of any scale
into a share of steps: the start probability epsilon_levy of the episode. The
lengths of flights are those of the paper. The last signal of each episode does
not count, because it contains the value of a terminal state, which is never
trained.

Source: Pislar et al. 2022 (arXiv:2108.11811), Sec. 2.3 and Alg. 1. Differs from
the paper: exponents are limited, so that float32 does not overflow.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from bt_acme import config as config_lib
from bt_acme.core import arrays, types, value_rescaling
from bt_acme.core.behavior_transfer import flights
from bt_acme.core.behavior_transfer.flight_laws import zeta

_MAX_EXPONENT = 50.0


class Homeostasis(NamedTuple):
  """Moving averages of a signal; all scalars are float32 [].

  Attributes:
    num: the number of signals so far.
    mean: the mean of recent signals.
    variance: the variance of recent signals.
    mean_exponential: the mean of recent standardized signals' exponentials.
  """

  num: jax.Array
  mean: jax.Array
  variance: jax.Array
  mean_exponential: jax.Array


class Triggered(NamedTuple):
  """The state of one environment.

  Attributes:
    steps: int32 [], the number of steps of the episode.
    values: float32 [k], the agent's values at the last k steps.
    rewards: float32 [k], the rewards of the last k steps.
    homeostasis: the moving averages, which outlive episodes.
    before: the moving averages before the last step.
  """

  steps: jax.Array
  values: jax.Array
  rewards: jax.Array
  homeostasis: Homeostasis
  before: Homeostasis


def promise_discrepancy(
  values: jax.Array, rewards: jax.Array, value: jax.Array, *, discount: float
) -> jax.Array:
  """Returns the error of the value of k steps ago.

    D = |V(s_{t-k}) - Σ_{i<k} γ^i R_{t-k+i+1} - γ^k V(s_t)|

  Args:
    values: float32 [k], V(s_{t-k}) .. V(s_{t-1}).
    rewards: float32 [k], R_{t-k+1} .. R_t.
    value: float32 [], V(s_t).
    discount: γ.

  Returns:
    float32 [].
  """
  num = values.shape[0]
  powers = discount ** jnp.arange(num, dtype=jnp.float32)
  promised = jnp.sum(powers * rewards) + discount**num * value
  return jnp.abs(values[0] - promised)


def trigger_probability(
  state: Homeostasis, signal: jax.Array, rate: jax.Array
) -> tuple[jax.Array, Homeostasis]:
  """Turns a signal into a probability whose mean is about the target rate.

  With τ = min(n, 100 / ρ), each average y becomes (1 - 1/τ) y + x / τ. The
  probability is min(1, ρ e^z / E[e^z]) for the standardized signal z. Its mean
  is smaller than the rate if rare, large signals reach 1.

  Args:
    state: the averages of n - 1 signals.
    signal: float32 [], the n-th signal.
    rate: float32 [], the target rate ρ in (0, 1].

  Returns:
    The probability, float32 [], and the new averages.
  """
  num = state.num + 1
  weight = 1 / jnp.minimum(num, 100 / rate)
  mean = state.mean + weight * (signal - state.mean)
  variance = state.variance + weight * ((signal - mean) ** 2 - state.variance)
  deviation = jnp.sqrt(jnp.where(variance > 0, variance, 1))
  standardized = jnp.where(variance > 0, (signal - mean) / deviation, 0)
  exponential = jnp.exp(jnp.minimum(standardized, _MAX_EXPONENT))
  mean_exponential = state.mean_exponential + weight * (
    exponential - state.mean_exponential
  )
  return (
    jnp.minimum(rate * exponential / mean_exponential, 1),
    Homeostasis(num, mean, variance, mean_exponential),
  )


def make(
  config: config_lib.TransferConfig, learner: config_lib.LearnerConfig
) -> flights.FlightLaw:
  """Returns the law with `promise_steps` and the lengths of `zeta`."""
  lengths = zeta.make(config, learner)

  def init() -> Triggered:
    zero = jnp.zeros([], jnp.float32)
    none = jnp.zeros([config.promise_steps], jnp.float32)
    averages = Homeostasis(*(zero,) * 4)
    return Triggered(jnp.zeros([], jnp.int32), none, none, averages, averages)

  def start(
    state: flights.FlightState,
    inputs: flights.FlightInput,
    keys: Sequence[types.PRNGKey],
  ) -> tuple[jax.Array, jax.Array, Triggered]:
    law: Triggered = state.law
    start_key, _ = keys
    value = value_rescaling.invert(
      jnp.max(inputs.q_values), learner.value_rescaling_epsilon
    )
    rewards = jnp.append(law.rewards[1:], inputs.prev_reward)
    signal = promise_discrepancy(
      law.values, rewards, value, discount=learner.discount
    )
    steps = jnp.where(inputs.is_first, 0, law.steps)
    is_known = steps >= config.promise_steps
    rate = state.start_probability
    before = arrays.tree_where(inputs.is_first, law.before, law.homeostasis)
    probability, averages = trigger_probability(before, signal, rate)
    _, length, _ = lengths.start(state, inputs, keys)
    uniform = jax.random.uniform(start_key, [], jnp.float32)
    return (
      is_known & (uniform < probability),
      length,
      Triggered(
        steps + 1,
        jnp.append(law.values[1:], value),
        rewards,
        arrays.tree_where(is_known, averages, before),
        before,
      ),
    )

  return flights.FlightLaw(start, init)
