"""Tests flights: how often they start, their lengths and their behaviors."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme import config as config_lib
from bt_acme.core.behavior_transfer import flights
from bt_acme.core.behavior_transfer.flight_laws import zeta
from tests.reference import flights as reference

_SAMPLES = 50_000


def _state(steps_left=0, behavior=0, start_probability=1.0):
  return flights.FlightState(
    jnp.asarray(steps_left, jnp.int32),
    jnp.asarray(behavior, jnp.int32),
    jnp.asarray(start_probability, jnp.float32),
  )


def _law(exponent, max_length):
  config = config_lib.TransferConfig(
    flight_exponent=exponent, max_flight_length=max_length
  )
  return zeta.make(config, config_lib.LearnerConfig())


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _steps(exponent, max_length, weights, start_probability):
  law = _law(exponent, max_length)
  state = _state(start_probability=start_probability)
  keys = jax.random.split(jax.random.PRNGKey(0), _SAMPLES)

  def step(key):
    return flights.step(state, key, law, None, weights)[0]

  return jax.vmap(step)(keys)


def _samples(exponent, max_length, weights=(1.0,), start_probability=1.0):
  """Returns the results of `step` in many environments without a flight."""
  steps = _steps(exponent, max_length, weights, start_probability)
  return jax.tree.map(np.asarray, steps)


@pytest.mark.parametrize('exponent', [1.5, 2.0, 3.0, 4.0])
@pytest.mark.parametrize('max_length', [1, 2, 50, 10_000])
def test_survival_matches_exact_sums(exponent, max_length):
  actual = zeta.survival(exponent, max_length)
  assert actual.shape == (max_length - 1,)
  assert actual.dtype == np.float32
  probabilities = reference.length_probabilities(exponent, max_length)
  expected = np.cumsum(probabilities[::-1])[::-1][1:]  # P(N > n) = P(N >= n+1)
  np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-9)


def test_survival_has_the_published_values():
  survival = zeta.survival(2.0, 10_000)
  np.testing.assert_allclose(1 - survival[0], 0.608, atol=5e-4)
  np.testing.assert_allclose(survival[10 - 1], 0.058, atol=5e-4)
  np.testing.assert_allclose(survival[100 - 1], 0.006, atol=1e-4)
  np.testing.assert_allclose(survival[1000 - 1], 6e-4, atol=1e-5)
  # E[N] = sum of P(N > n) from n = 0, for truncated lengths.
  np.testing.assert_allclose(1 + survival.astype(float).sum(), 6.56, atol=5e-3)


def test_survival_is_accurate_beyond_a_million():
  survival = zeta.survival(2.0, 1_500_001)
  assert survival.shape == (1_500_000,)
  # The tail of zeta(2) after n is 1 / n, up to terms in 1 / n^2.
  np.testing.assert_allclose(survival[-1], 6 / np.pi**2 / 1.5e6, rtol=1e-3)


@pytest.mark.parametrize(
  'exponent, max_length', [(1.5, 30), (3.0, 30), (1.5, 4), (2.0, 1)]
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


def test_a_behavior_can_be_drawn_for_a_whole_episode():
  law = _law(2.0, 3)
  weights = jnp.asarray([0.5, 0.0, 0.5])

  def step(state, row):
    key, is_first = row
    step, state = flights.step(state, key, law, None, weights, is_first)
    return state, step

  def episode(key):
    state = flights.new_episode(key, min_probability=0.5, max_probability=0.5)
    rows = (jax.random.split(key, 20), jnp.arange(20) == 0)
    return jax.lax.scan(step, state, rows)[1]

  steps = jax.jit(jax.vmap(episode))(jax.random.split(jax.random.key(0), 300))
  behavior = np.asarray(steps.behavior)
  assert behavior.shape == (300, 20)
  np.testing.assert_array_equal(behavior, behavior[:, :1].repeat(20, axis=1))
  counts = np.bincount(behavior[:, 0], minlength=3)
  assert counts[1] == 0 and counts.min(initial=300, where=counts > 0) > 110
  assert np.asarray(steps.starts).sum(axis=1).max() > 5


@pytest.mark.parametrize('probability', [0.0, 0.05, 1.0])
def test_flights_start_with_their_probability(probability):
  step = _samples(2.0, 10, start_probability=probability)
  np.testing.assert_allclose(step.starts.mean(), probability, atol=0.005)
  np.testing.assert_array_equal(step.in_flight, step.starts)
  np.testing.assert_array_equal(step.length > 0, step.starts)


def test_flight_draws_its_behavior_by_weight():
  behavior = _samples(2.0, 10, weights=(1.0, 0.0, 3.0)).behavior
  shares = np.bincount(behavior, minlength=3) / _SAMPLES
  np.testing.assert_allclose(shares, [0.25, 0.0, 0.75], atol=0.01)


def test_start_length_and_behavior_are_independent():
  step = _samples(2.0, 10, weights=(1.0, 1.0), start_probability=0.5)
  long = step.length[step.starts] > 1
  second = step.behavior[step.starts] == 1
  np.testing.assert_allclose(np.mean(long & second), 0.392 / 2, atol=0.01)


def test_flight_in_progress_continues_with_its_behavior():
  """The flight neither restarts nor changes its behavior, for any key."""
  law = _law(2.0, 10)
  next_step = jax.jit(
    lambda state, key: flights.step(state, key, law, None, (1.0, 1.0, 0.0))
  )
  for steps_left, seed in itertools.product((1, 2, 7), range(5)):
    state = _state(steps_left, behavior=2)
    step, after = next_step(state, jax.random.PRNGKey(seed))
    assert bool(step.in_flight) and not bool(step.starts)
    assert step.length == 0
    assert step.behavior == after.behavior == 2
    assert after.steps_left == steps_left - 1
    assert after.start_probability == state.start_probability


def test_start_probability_is_log_uniform():
  keys = jax.random.split(jax.random.PRNGKey(0), _SAMPLES)
  draw = jax.vmap(
    lambda key: flights.new_episode(
      key, min_probability=1e-4, max_probability=0.1
    )
  )
  state = jax.jit(draw)(keys)
  np.testing.assert_array_equal(state.steps_left, np.zeros(_SAMPLES))
  probability = np.asarray(state.start_probability)
  assert probability.dtype == np.float32
  assert 0.999e-4 < probability.min() and probability.max() < 0.1001
  shares = (np.log(np.sort(probability)) - np.log(1e-4)) / np.log(1e3)
  uniform = (np.arange(_SAMPLES) + 0.5) / _SAMPLES
  # Kolmogorov-Smirnov: 2.2 / sqrt(n) is exceeded once in ten thousand.
  assert np.abs(shares - uniform).max() < 2.2 / _SAMPLES**0.5
