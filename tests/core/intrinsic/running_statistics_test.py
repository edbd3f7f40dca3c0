import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme.core.intrinsic import running_statistics
from tests.reference import intrinsic as reference


def accumulate(values, dtype=np.float64, decay=0.0):
  moments = running_statistics.Moments(*np.zeros([3, *values.shape[1:]], dtype))
  for value in values.astype(dtype):
    moments = running_statistics.update_moments(moments, value, decay=decay)
  return moments


@functools.partial(jax.jit, static_argnames='decay')
def scan(start, values, decay=0.0):
  """Adds float32 values in JAX."""

  def take(moments, value):
    return running_statistics.update_moments(moments, value, decay=decay), None

  return jax.lax.scan(take, running_statistics.Moments(*start), values)[0]


def make_values(kind):
  rng = np.random.default_rng(0)
  return {
    'random': rng.exponential(size=(50, 3)),
    'offset': 1e6 + rng.normal(size=(50, 3)),
    'constant': np.full((50, 3), 0.3),
    'huge': 1e12 * rng.exponential(size=(50, 3)),
    'one': rng.exponential(size=(1, 3)),
    'two': rng.exponential(size=(2, 3)),
  }[kind]


@pytest.mark.parametrize(
  'kind', ['random', 'offset', 'constant', 'huge', 'one', 'two']
)
@pytest.mark.parametrize('unvaried', ['one', 'floor'])
@pytest.mark.parametrize('decay', [0.0, 0.01, 0.07, 0.6, 1.0])
def test_moments_match_reference(kind, unvaried, decay):
  values = make_values(kind)
  moments = accumulate(values, decay=decay)
  sigma = running_statistics.standard_deviation(moments, unvaried=unvaried)
  assert sigma.shape == (3,)
  for i in range(3):
    mean, expected = reference.mean_and_sigma(
      list(values[:, i]), unvaried, decay
    )
    _, variance = reference.mean_and_variance(list(values[:, i]), decay)
    if not decay:
      np.testing.assert_allclose(
        variance, np.var(values[:, i]), rtol=1e-8, atol=1e-16
      )
    np.testing.assert_allclose(moments.mean[i], mean, rtol=1e-12)
    np.testing.assert_allclose(
      moments.variance[i], variance, rtol=1e-8, atol=1e-16
    )
    np.testing.assert_allclose(sigma[i], expected, rtol=1e-8)
  window = max(1 / decay, 2) if decay else np.inf
  np.testing.assert_array_equal(moments.count, min(len(values), window))


def test_float32_moments_stay_accurate_when_the_count_stops():
  # 2^24 + 1 rounds to 2^24 in float32, so the count stops growing here.
  values = jnp.tile(jnp.float32([1.0, 5.0]), 500_000)
  moments = scan(np.float32([2.0**24, 3.0, 4.0]), values)
  assert moments.count == 2.0**24
  np.testing.assert_allclose(moments.mean, 3, rtol=1e-2)
  np.testing.assert_allclose(
    running_statistics.standard_deviation(moments), 2, rtol=1e-2
  )


@pytest.mark.parametrize('dtype', [np.float32, np.float64])
@pytest.mark.parametrize('decay', [0.3, 1.0])
def test_constant_values_never_give_a_negative_variance(dtype, decay):
  rng = np.random.default_rng(4)
  values = 10.0 ** rng.integers(-6, 6, size=(40, 200))
  values[20:] = values[20]
  moments = running_statistics.Moments(*np.zeros([3, 200], dtype))
  for value in values.astype(dtype):
    moments = running_statistics.update_moments(moments, value, decay=decay)
    assert all(field.dtype == dtype for field in moments)
    assert np.all(moments.variance >= 0)
    if decay == 1:
      # Only a rounding error of the previous value remains.
      np.testing.assert_allclose(moments.mean, value, atol=0.2)
      np.testing.assert_array_equal(moments.variance, 0)
      sigma = running_statistics.standard_deviation(moments)
      np.testing.assert_array_equal(sigma, 1)


@pytest.mark.parametrize('count', [0, 1e8])
def test_float32_moments_forget_after_any_number_of_values(count):
  """A window of large values forgets them after enough small values."""
  rng = np.random.default_rng(5)
  values = np.float32(3 + 2 * rng.normal(size=[50_000, 20]))
  start = np.repeat([[count], [3e3], [1e6]], 20, axis=1)
  moments = scan(np.float32(start), values, decay=0.001)
  np.testing.assert_array_equal(moments.count, 1000)
  # Noise of the window: 2 / sqrt(2000) in one column, less in the mean.
  np.testing.assert_allclose(np.mean(moments.mean), 3, rtol=0.02)
  sigma = running_statistics.standard_deviation(moments)
  np.testing.assert_allclose(np.mean(sigma), 2, rtol=0.02)
  # The last 10 windows, in float64.
  mean, expected = reference.mean_and_sigma(
    list(np.float64(values[-10_000:, 0])), decay=0.001
  )
  np.testing.assert_allclose(moments.mean[0], mean, rtol=1e-3)
  np.testing.assert_allclose(sigma[0], expected, rtol=1e-3)


def test_moments_of_full_windows_merge_with_equal_weights():
  rng = np.random.default_rng(6)
  old, young = rng.normal(0, 1, size=(5000, 1)), rng.normal(9, 2, size=(300, 1))
  stacked = stack((old, young, young[:20]), decay=0.01)
  np.testing.assert_array_equal(stacked.count[:, 0], [100, 100, 20])
  merged = running_statistics.merge_moments(stacked)
  weights = stacked.count / 220
  mean = np.sum(weights * stacked.mean)
  np.testing.assert_allclose(merged.mean, mean)
  np.testing.assert_allclose(
    merged.variance,
    np.sum(weights * (stacked.variance + (stacked.mean - mean) ** 2)),
  )
  # Updates of the merged moments forget at the same rate.
  after = running_statistics.update_moments(merged, np.ones(1), decay=0.01)
  assert after.count == 100
  np.testing.assert_allclose(after.mean, mean + 0.01 * (1 - mean))


def stack(parts, decay=0.0):
  """Returns the moments of each of several parts, [N, 1]."""
  moments = [accumulate(part, decay=decay) for part in parts]
  return jax.tree.map(lambda *fields: np.stack(fields), *moments)


@pytest.mark.parametrize('in_jax', [False, True])
def test_merged_moments_are_those_of_all_values(in_jax):
  rng = np.random.default_rng(2)
  parts = [rng.normal(i, 1 + i, size=(n, 1)) for i, n in enumerate((5, 0, 40))]
  stacked = stack(parts)
  if in_jax:
    stacked = jax.tree.map(lambda x: jnp.array(x, jnp.float32), stacked)
  merged = running_statistics.merge_moments(stacked)
  expected = accumulate(np.concatenate(parts))
  for field, other in zip(merged, expected, strict=True):
    assert field.shape == (1,)
    np.testing.assert_allclose(field, other, rtol=1e-5 if in_jax else 1e-12)


def test_merging_empty_moments_gives_empty_moments():
  empty = running_statistics.Moments(*np.zeros([3, 4]))
  np.testing.assert_array_equal(running_statistics.merge_moments(empty), 0)


@pytest.mark.parametrize('decay', [0.0, 0.1, 1.0])
def test_running_mean_matches_reference(decay):
  rng = np.random.default_rng(3)
  groups = [rng.exponential(size=n) for n in (0, 1, 3, 0, 10, 10)]
  average = running_statistics.RunningMean(np.zeros(1), np.zeros(1))
  for i, group in enumerate(groups):
    mean = group.mean() if len(group) else 0.0
    average = running_statistics.update_mean(
      average, np.array([mean]), np.float64([len(group)]), decay=decay
    )
    np.testing.assert_allclose(
      average.mean[0], reference.mean_distance(groups[: i + 1], decay)
    )
  assert average.count[0] == 24


def test_merged_mean_weighs_by_count():
  average = running_statistics.RunningMean(
    np.float64([1, 0, 3]), np.float64([8, 9, 4])
  )
  merged = running_statistics.merge_means(average)
  assert merged.count == 4
  assert merged.mean == 5
