"""Tests the running statistics of an intrinsic reward."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme.core.intrinsic import reward_statistics as reward_lib
from tests.reference import intrinsic as reference


def start(num, dtype=np.float64, errors=(0, 0, 0)):
  """Returns statistics [num] with the given moments of errors."""
  fields = [np.full(num, x, dtype) for x in (*errors, 0, 0)]
  return reward_lib.IntrinsicStatistics(*fields)


def accumulate(values, decay=0.0):
  statistics = start(values.shape[1])
  for value in values:
    statistics = reward_lib.add_error(statistics, value, decay=decay)
  return statistics


@functools.partial(jax.jit, static_argnames='decay')
def scan(statistics, values, decay=0.0):
  """Adds float32 errors in JAX."""

  def take(statistics, value):
    return reward_lib.add_error(statistics, value, decay=decay), None

  return jax.lax.scan(take, statistics, values)[0]


RNG = np.random.default_rng(0)
VALUES = {
  'random': RNG.exponential(size=(50, 3)),
  'offset': 1e6 + RNG.normal(size=(50, 3)),
  'constant': np.full((50, 3), 0.3),
  'huge': 1e12 * RNG.exponential(size=(50, 3)),
  'one': RNG.exponential(size=(1, 3)),
  'two': RNG.exponential(size=(2, 3)),
}


@pytest.mark.parametrize('values', VALUES.values(), ids=VALUES)
@pytest.mark.parametrize('unvaried', ['one', 'floor'])
@pytest.mark.parametrize('decay', [0.0, 0.01, 0.07, 0.6, 1.0])
def test_moments_match_reference(values, unvaried, decay):
  moments = accumulate(values, decay=decay)
  sigma = reward_lib.error_deviation(moments, unvaried)
  assert sigma.shape == (3,)
  for i in range(3):
    column = list(values[:, i])
    mean, expected = reference.mean_and_sigma(column, unvaried, decay)
    _, variance = reference.mean_and_variance(column, decay)
    if not decay:
      np.testing.assert_allclose(variance, np.var(column), 1e-8, 1e-16)
    np.testing.assert_allclose(moments.error_mean[i], mean, rtol=1e-12)
    np.testing.assert_allclose(moments.error_variance[i], variance, 1e-8, 1e-16)
    np.testing.assert_allclose(sigma[i], expected, rtol=1e-8)
  window = max(1 / decay, 2) if decay else np.inf
  np.testing.assert_array_equal(moments.error_count, min(len(values), window))


def test_float32_means_of_skewed_values_do_not_drift():
  rare = jax.random.bernoulli(jax.random.key(0), 0.2, [3_000_000])
  values = jnp.where(rare, 5.0, 1.0)[:, None]
  before = start(1, np.float32, (2.0**24, 1.8, 2.56))
  moments = scan(before, values)
  np.testing.assert_allclose(moments.error_mean, 1.8, rtol=0.02)
  np.testing.assert_allclose(moments.error_variance, 2.56, rtol=0.05)

  def add(statistics, value):
    return reward_lib.add_distances(statistics, value, 10.0, decay=0.0), None

  distances = before._replace(
    distance_count=jnp.float32([2.0**28]), distance_mean=jnp.float32([1.8])
  )
  distances, _ = jax.jit(functools.partial(jax.lax.scan, add))(
    distances, values
  )
  np.testing.assert_allclose(distances.distance_mean, 1.8, rtol=0.02)


@pytest.mark.parametrize('dtype', [np.float32, np.float64])
@pytest.mark.parametrize('decay', [0.3, 1.0])
def test_constant_values_never_give_a_negative_variance(dtype, decay):
  rng = np.random.default_rng(4)
  values = 10.0 ** rng.integers(-6, 6, size=(40, 200))
  values[20:] = values[20]
  moments = start(200, dtype)
  for value in values.astype(dtype):
    moments = reward_lib.add_error(moments, value, decay=decay)
    assert all(field.dtype == dtype for field in moments)
    assert np.all(moments.error_variance >= 0)
    if decay == 1:
      # Only a rounding error of the previous value remains.
      np.testing.assert_allclose(moments.error_mean, value, atol=0.2)
      np.testing.assert_array_equal(reward_lib.error_deviation(moments), 1)


@pytest.mark.parametrize('count', [0, 1e8])
def test_float32_moments_forget_after_any_number_of_values(count):
  """A window of large values forgets them after enough small values."""
  rng = np.random.default_rng(5)
  values = np.float32(3 + 2 * rng.normal(size=[50_000, 20]))
  moments = scan(start(20, np.float32, (count, 3e3, 1e6)), values, decay=0.001)
  np.testing.assert_array_equal(moments.error_count, 1000)
  sigma = reward_lib.error_deviation(moments)
  # The last 10 windows, in float64.
  mean, expected = reference.mean_and_sigma(
    list(np.float64(values[-10_000:, 0])), decay=0.001
  )
  np.testing.assert_allclose(moments.error_mean[0], mean, rtol=1e-3)
  np.testing.assert_allclose(sigma[0], expected, rtol=1e-3)


def test_merged_statistics_are_those_of_all_observations():
  rng = np.random.default_rng(2)
  parts = [rng.normal(i, 1 + i, size=n) for i, n in enumerate((5, 0, 40))]
  made = [accumulate(part[:, None]) for part in parts]
  stacked = jax.tree.map(
    lambda *fields: np.concatenate(fields), *made
  )._replace(
    distance_count=np.float64([1, 0, 3]), distance_mean=np.float64([8, 9, 4])
  )
  merged = stacked.merged()
  assert all(np.shape(field) == () for field in merged)
  everything = np.concatenate(parts)
  expected = [45, everything.mean(), everything.var(), 4, 5]
  np.testing.assert_allclose(merged, expected, rtol=1e-12)
  np.testing.assert_array_equal(start(4).merged(), 0)


def test_a_field_that_nothing_merges_is_not_lost():
  names = (*reward_lib.IntrinsicStatistics._fields, 'visits')
  more = type('More', (reward_lib.IntrinsicStatistics,), {'_fields': names})
  with pytest.raises(ValueError, match='shorter'):
    more(*np.ones((5, 2))).merged()
