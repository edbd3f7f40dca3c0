"""Tests the rewards of host and device against the papers' formulas."""

import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme import config as config_lib
from bt_acme.core.intrinsic import features, host_reward, rewards
from bt_acme.core.intrinsic import reward as reward_lib
from tests.core.intrinsic import streams
from tests.reference import intrinsic as reference


@pytest.mark.parametrize('config', streams.CONFIGS)
@pytest.mark.parametrize('kind', ['random', 'identical', 'far', 'revisits'])
def test_rewards_match_reference(config, kind):
  stream = streams.make_stream(kind)
  expected, _, scales = streams.expected_rewards(config, stream)
  made, reward = streams.on_host(config, stream)
  assert made.dtype == np.float32
  assert made.shape == expected.shape == (streams.T, 5)
  np.testing.assert_allclose(made, expected, rtol=1e-4)
  state, made = streams.on_device(config)(*stream)
  assert made.dtype == jnp.float32
  np.testing.assert_allclose(made, expected, rtol=2e-3)
  if config.intrinsic_reward == 'ngu':
    np.testing.assert_allclose(
      reward.statistics().distance_mean, scales[-1], rtol=1e-5
    )
  for field, other in zip(state.statistics, reward.statistics(), strict=True):
    np.testing.assert_allclose(field, other, rtol=1e-4)


def test_the_reward_varies():
  made, novelties, _ = streams.expected_rewards(
    streams.CONFIG, streams.make_stream()
  )
  assert len(np.unique(made)) > 200
  assert np.sum(made > 1.001 * novelties) > 20  # alpha above 1
  limited = made > (streams.CONFIG.reward_scale_limit - 1e-3) * novelties
  assert np.sum(limited & (novelties > 0)) > 0
  similar = streams.changed(
    num_neighbors=70, memory_capacity=90, max_similarity=4.0
  )
  _, novelties, _ = streams.expected_rewards(
    similar, streams.make_stream('identical')
  )
  assert np.sum(novelties[10:] == 0) > 20


def test_vector_of_the_reference_document():
  config = config_lib.IntrinsicConfig(embedding_size=2, num_neighbors=2)
  embeddings = np.float32([[0, 0], [1, 0], [1, 1], [1, 1], [4, 1]])
  stream = (
    embeddings[:, None],
    np.ones([5, 1], np.float32),  # err = mu_e, hence alpha = 0.
    np.arange(5)[:, None] == 0,
  )
  expected = [[0], [90.58188], [65.76931], [0.998951], [104.632262]]
  reward = host_reward.HostReward(config, 1)
  made, scales = [], []
  for *given, is_first in zip(*stream, strict=True):
    made.append(reward.step(features.Features(*given), is_first))
    scales.append(reward.statistics().distance_mean[0])
  np.testing.assert_allclose(made, expected, rtol=1e-6)
  np.testing.assert_allclose(scales[1:], [1, 1.333333, 1, 3.285714], rtol=1e-6)
  np.testing.assert_allclose(
    streams.on_device(config)(*stream)[1], expected, rtol=1e-5
  )


def test_merged_statistics_are_those_of_all_observations():
  stream = streams.make_stream()
  _, reward = streams.on_host(streams.CONFIG, stream)
  merged = reward.statistics().merged()
  mean, sigma = reference.mean_and_sigma(list(np.float64(stream[1]).ravel()))
  assert all(np.shape(field) == () for field in merged)
  assert merged.error_count == stream[1].size
  np.testing.assert_allclose(merged.error_mean, mean)
  np.testing.assert_allclose(np.sqrt(merged.error_variance), sigma)
  each = reward.statistics()
  np.testing.assert_allclose(
    merged.distance_mean * merged.distance_count,
    np.sum(each.distance_mean * each.distance_count),
  )
  for_many = host_reward.HostReward(streams.CONFIG, 3, merged)
  for field, value in zip(for_many.statistics(), merged, strict=True):
    np.testing.assert_array_equal(field, np.full(3, value))


@pytest.mark.parametrize('name', rewards.BY_NAME)
def test_statistics_are_stored_by_these_names(name):
  """Checkpoints and exported behaviors use these names."""
  assert rewards.BY_NAME[name].statistics_class._fields == (
    'error_count',
    'error_mean',
    'error_variance',
    'distance_count',
    'distance_mean',
  )


@pytest.mark.parametrize('name', rewards.BY_NAME)
@pytest.mark.parametrize('xp, dtype', [(np, 'float64'), (jnp, 'float32')])
def test_a_formula_preserves_the_type_of_its_arrays(name, xp, dtype):
  reward, statistics, alpha = rewards.BY_NAME[name].evaluate(
    streams.CONFIG,
    features.Features(xp.ones([2, streams.D], dtype), xp.ones([2], dtype)),
    reward_lib.Neighbors(xp.ones([2, 3], dtype), xp.array([1, 3], 'int32')),
    reward_lib.IntrinsicStatistics(*xp.ones([5, 2], dtype)),
  )
  assert (alpha is not None) == (name == 'ngu')
  for array in (reward, *statistics, reward if alpha is None else alpha):
    assert isinstance(array, jnp.ndarray if xp is jnp else np.ndarray)
    assert array.shape == (2,) and array.dtype == dtype
