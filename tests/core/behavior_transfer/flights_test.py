"""Tests flights: how often they start, their lengths and their behaviors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme import config as config_lib
from bt_acme.core.behavior_transfer import flights
from bt_acme.core.behavior_transfer.flight_laws import zeta
from tests.reference import flights as reference

_SAMPLES = 50_000


def _samples(exponent, max_length, weights=(1.0,), start_probability=1.0):
  """Returns the results of `step` in many environments without a flight."""
  config = config_lib.TransferConfig(
    flight_exponent=exponent, max_flight_length=max_length
  )
  law = zeta.make(config, config_lib.LearnerConfig())
  no_flight = jnp.zeros([], jnp.int32)
  state = flights.FlightState(no_flight, no_flight, start_probability)

  @jax.jit
  @jax.vmap
  def step(key):
    return flights.step(state, key, law, None, weights)[0]

  keys = jax.random.split(jax.random.PRNGKey(0), _SAMPLES)
  return jax.tree.map(np.asarray, step(keys))


@pytest.mark.parametrize('exponent', [1.5, 2.0, 3.0, 4.0])
@pytest.mark.parametrize('max_length', [1, 2, 50, 10_000])
def test_survival_matches_exact_sums(exponent, max_length):
  actual = zeta.survival(exponent, max_length)
  assert actual.shape == (max_length - 1,)
  assert actual.dtype == np.float32
  probabilities = reference.length_probabilities(exponent, max_length)
  expected = np.cumsum(probabilities[::-1])[::-1][1:]  # P(N > n) = P(N >= n+1)
  np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-9)


def test_survival_is_accurate_beyond_a_million():
  survival = zeta.survival(2.0, 1_500_001)
  assert survival.shape == (1_500_000,)
  # The tail of zeta(2) after n is 1 / n, up to terms in 1 / n^2.
  np.testing.assert_allclose(survival[-1], 6 / np.pi**2 / 1.5e6, rtol=1e-3)


@pytest.mark.parametrize(
  'exponent, max_length', [(1.5, 30), (3.0, 4), (2.0, 1)]
)
def test_lengths_follow_the_truncated_zeta_law(exponent, max_length):
  lengths = _samples(exponent, max_length).length
  assert lengths.shape == (_SAMPLES,)
  assert lengths.min() == 1
  assert lengths.max() == max_length
  counts = np.bincount(lengths, minlength=max_length + 1)[1:]
  expected = _SAMPLES * reference.length_probabilities(exponent, max_length)
  # 29 degrees of freedom: 66 is exceeded once in ten thousand.
  assert np.sum((counts - expected) ** 2 / expected) < 66


def test_the_default_draws_are_those_of_the_first_version():
  step = _samples(2.0, 50, weights=(1.0, 0.5, 0.25), start_probability=0.5)
  np.testing.assert_array_equal(
    step.behavior[:24],
    [1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 0, 2, 1, 0, 0, 0, 0, 0, 2, 0, 0],
  )
  np.testing.assert_array_equal(
    step.length[:24],
    [1, 0, 2, 0, 0, 0, 1, 1, 0, 1, 0, 0, 1, 3, 2, 1, 3, 1, 0, 0, 0, 1, 0, 2],
  )


@pytest.mark.parametrize('probability', [0.0, 0.05, 1.0])
def test_flights_start_with_their_probability(probability):
  step = _samples(2.0, 10, start_probability=probability)
  np.testing.assert_allclose(step.starts.mean(), probability, atol=0.005)
  np.testing.assert_array_equal(step.in_flight, step.starts)
  np.testing.assert_array_equal(step.length > 0, step.starts)


def test_start_length_and_behavior_are_independent():
  weights = (1.0, 0.0, 3.0)
  step = _samples(2.0, 10, weights=weights, start_probability=0.5)
  long = step.length[step.starts] > 1
  behavior = step.behavior[step.starts]
  third = behavior == 2
  np.testing.assert_allclose(np.mean(long & third), 0.392 * 0.75, atol=0.01)
  shares = np.bincount(behavior, minlength=3) / len(behavior)
  np.testing.assert_allclose(shares, [0.25, 0.0, 0.75], atol=0.01)


def _new_episodes(**settings):
  """Returns the states at the start of many episodes."""
  config = config_lib.TransferConfig(**settings)
  draw = jax.jit(jax.vmap(lambda key: flights.new_episode(key, config)))
  return draw(jax.random.split(jax.random.PRNGKey(0), _SAMPLES))


def _assert_log_uniform(values, low, high):
  shares = np.log(np.sort(values) / low) / np.log(high / low)
  uniform = (np.arange(len(values)) + 0.5) / len(values)
  # Kolmogorov-Smirnov: 2.2 / sqrt(n) is exceeded once in ten thousand.
  assert np.abs(shares - uniform).max() < 2.2 / len(values) ** 0.5


def test_half_of_the_episodes_have_a_log_uniform_epsilon():
  state = _new_episodes(flight_epsilon=0.3)
  epsilon = np.asarray(state.epsilon, np.float64)
  positive = epsilon[epsilon > 0]
  assert abs(len(positive) / _SAMPLES - 0.5) < 2 / _SAMPLES**0.5
  _assert_log_uniform(positive, 0.03, 0.3)
  # The other draws of an episode stay the same, and are independent.
  without = _new_episodes()
  assert without.epsilon == ()
  np.testing.assert_allclose(
    state.start_probability, without.start_probability, rtol=1e-5
  )
  starts = np.log(np.asarray(state.start_probability, np.float64))
  for drawn in (epsilon == 0, epsilon):
    assert abs(np.corrcoef(starts, drawn)[0, 1]) < 4 / _SAMPLES**0.5


def test_start_probability_is_log_uniform():
  bounds = {'min_flight_probability': 1e-4, 'max_flight_probability': 0.1}
  state = _new_episodes(**bounds)
  np.testing.assert_array_equal(state.steps_left, np.zeros(_SAMPLES))
  probability = np.asarray(state.start_probability)
  assert probability.dtype == np.float32
  assert 0.999e-4 < probability.min() and probability.max() < 0.1001
  _assert_log_uniform(probability, 1e-4, 0.1)
