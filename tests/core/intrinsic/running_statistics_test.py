import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme.core.intrinsic import running_statistics
from tests.reference import intrinsic as reference


def accumulate(values, dtype=np.float64):
  moments = running_statistics.Moments(*np.zeros([3, *values.shape[1:]], dtype))
  for value in values.astype(dtype):
    moments = running_statistics.update_moments(moments, value)
  return moments


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
def test_moments_match_reference(kind, unvaried):
  values = make_values(kind)
  moments = accumulate(values)
  sigma = running_statistics.standard_deviation(moments, unvaried=unvaried)
  assert sigma.shape == (3,)
  for i in range(3):
    mean, expected = reference.mean_and_sigma(list(values[:, i]), unvaried)
    np.testing.assert_allclose(moments.mean[i], mean, rtol=1e-12)
    np.testing.assert_allclose(
      moments.variance[i], np.var(values[:, i]), rtol=1e-8, atol=1e-16
    )
    np.testing.assert_allclose(sigma[i], expected, rtol=1e-8)
  np.testing.assert_array_equal(moments.count, len(values))


@pytest.mark.parametrize('scale', [1e-6, 1.0, 1e6])
@pytest.mark.parametrize('in_jax', [False, True])
def test_sigma_is_one_until_the_values_have_varied(scale, in_jax):
  values = scale * np.array([0.3, 0.3, 0.3, 0.3, 0.4])
  moments = running_statistics.Moments(
    *(np.zeros(1, np.float32) for _ in range(3))
  )
  if in_jax:
    moments = jax.tree.map(jnp.array, moments)
  sigmas = []
  for value in values:
    moments = running_statistics.update_moments(moments, np.float32([value]))
    sigmas.append(float(running_statistics.standard_deviation(moments)[0]))
  assert sigmas[:4] == [1.0] * 4
  np.testing.assert_allclose(sigmas[4], 0.04 * scale, rtol=1e-5)


@pytest.mark.parametrize('kind', ['random', 'constant', 'two'])
def test_jax_matches_numpy(kind):
  values = make_values(kind).astype(np.float32)
  expected = accumulate(values)

  def take(moments, value):
    return running_statistics.update_moments(moments, value), None

  start = running_statistics.Moments(*jnp.zeros([3, 3], jnp.float32))
  actual, _ = jax.jit(lambda x: jax.lax.scan(take, start, x))(values)
  for field, other in zip(actual, expected, strict=True):
    assert field.dtype == jnp.float32
    np.testing.assert_allclose(field, other, rtol=1e-5, atol=1e-7)
  np.testing.assert_allclose(
    running_statistics.standard_deviation(actual),
    running_statistics.standard_deviation(expected),
    rtol=1e-5,
  )


@pytest.mark.parametrize('dtype,rtol', [(np.float64, 1e-5), (np.float32, 0.05)])
def test_a_billion_values_do_not_wear_the_moments_out(dtype, rtol):
  rng = np.random.default_rng(1)
  moments = running_statistics.Moments(
    *(np.full([500], x, dtype) for x in (1e9, 3.0, 4.0))
  )
  if dtype == np.float32:
    moments = jax.tree.map(jnp.array, moments)
  for _ in range(200):
    value = (3 + 2 * rng.normal(size=500)).astype(dtype)
    moments = running_statistics.update_moments(moments, value)
  np.testing.assert_allclose(moments.mean, 3, rtol=rtol)
  np.testing.assert_allclose(
    running_statistics.standard_deviation(moments), 2, rtol=rtol
  )


def test_float32_moments_hold_when_the_count_stands_still():
  # 2^24 + 1 is 2^24 in float32: from here on, the count does not grow.
  start = running_statistics.Moments(*jnp.float32([2.0**24, 3.0, 4.0]))

  def take(moments, value):
    return running_statistics.update_moments(moments, value), None

  values = jnp.tile(jnp.float32([1.0, 5.0]), 500_000)
  moments, _ = jax.jit(lambda x: jax.lax.scan(take, start, x))(values)
  assert moments.count == 2.0**24
  np.testing.assert_allclose(moments.mean, 3, rtol=1e-2)
  np.testing.assert_allclose(
    running_statistics.standard_deviation(moments), 2, rtol=1e-2
  )


@pytest.mark.parametrize('in_jax', [False, True])
def test_merged_moments_are_those_of_all_values(in_jax):
  rng = np.random.default_rng(2)
  parts = [rng.normal(i, 1 + i, size=(n, 1)) for i, n in enumerate((5, 0, 40))]
  moments = [accumulate(part) for part in parts]
  stacked = running_statistics.Moments(
    *(np.stack(fields) for fields in zip(*moments, strict=True))
  )  # [3, 1]
  if in_jax:
    stacked = jax.tree.map(lambda x: jnp.array(x, jnp.float32), stacked)
  merged = running_statistics.merge_moments(stacked)
  expected = accumulate(np.concatenate(parts))
  for field, other in zip(merged, expected, strict=True):
    assert field.shape == (1,)
    np.testing.assert_allclose(field, other, rtol=1e-5 if in_jax else 1e-12)


def test_nothing_merges_to_nothing():
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
