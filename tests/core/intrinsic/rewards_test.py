"""Tests the rewards of host and device against the papers' formulas."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme import config as config_lib
from bt_acme.core.intrinsic import device_reward, features
from bt_acme.core.intrinsic import reward_statistics as reward_lib
from tests.core.intrinsic import streams
from tests.reference import intrinsic as reference

CONFIGS = [
  streams.changed(**settings)
  for settings in (
    {'alpha_offset': 1.0},
    {'statistics_scope': 'episode', 'distance_decay': 0.05, 'error_decay': 0.1},
    {'error_decay': 0.3, 'error_deviation': 'floor', 'alpha_offset': 1.0},
    {'num_neighbors': 30, 'memory_capacity': 30},
    {'num_neighbors': 70, 'memory_capacity': 90, 'max_similarity': 4.0},
    {'num_neighbors': 1, 'memory_capacity': 1},
    {'intrinsic_reward': 'rnd'},
    {
      **{'intrinsic_reward': 'rnd', 'statistics_scope': 'episode'},
      **{'error_deviation': 'floor', 'error_decay': 1.0},
    },
    {'intrinsic_reward': 'constant', 'constant_reward': 0.5},
  )
]


@pytest.mark.parametrize('config', CONFIGS)
@pytest.mark.parametrize('kind', ['random', 'identical', 'far', 'revisits'])
def test_rewards_match_reference(config, kind):
  stream = streams.make_stream(kind)
  columns = [
    reference.rewards(config, *(x[:, i] for x in stream))
    for i in range(streams.N)
  ]
  expected, scales, alpha = (  # Rewards, d_m^2 and alpha, [T, N] each.
    np.stack(x, axis=1) for x in zip(*columns, strict=True)
  )
  reward = streams.of(config)
  made = streams.on_host(reward, stream)
  assert made.dtype == np.float32
  assert made.shape == expected.shape == (streams.T, streams.N)
  np.testing.assert_allclose(made, expected, rtol=1e-4)
  (_, statistics), (made, alphas) = streams.on_device(config)(
    *stream, np.zeros_like(stream[2])
  )
  assert made.dtype == jnp.float32
  np.testing.assert_allclose(made, expected, rtol=2e-3)
  if config.intrinsic_reward == 'ngu':
    np.testing.assert_allclose(
      reward.statistics().distance_mean, scales[-1], rtol=1e-5
    )
    np.testing.assert_allclose(reward.alpha, alpha[-1], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(alphas[-1], alpha[-1], rtol=1e-3, atol=1e-3)
  else:
    assert reward.alpha is None and alphas is None
  for field, other in zip(statistics, reward.statistics(), strict=True):
    np.testing.assert_allclose(field, other, rtol=1e-4)


def test_vector_of_the_reference_document():
  config = config_lib.IntrinsicConfig(embedding_size=2, num_neighbors=2)
  embeddings = np.float32([[0, 0], [1, 0], [1, 1], [1, 1], [4, 1]])
  stream = (
    embeddings[:, None],
    np.ones([5, 1], np.float32),  # err = mu_e, hence alpha = 0.
    np.arange(5)[:, None] == 0,
  )
  expected = [[0], [90.58188], [65.76931], [0.998951], [104.632262]]
  reward = streams.of(config, 1)
  made = streams.on_host(reward, stream)
  np.testing.assert_allclose(made, expected, rtol=1e-6)
  mean = reward.statistics().distance_mean
  np.testing.assert_allclose(mean, 3.285714, rtol=1e-6)
  _, (made, _) = streams.on_device(config, 1)(*stream, np.zeros([5, 1], bool))
  np.testing.assert_allclose(made, expected, rtol=1e-5)


def test_other_environments_stay_unchanged_and_memories_are_not_copied():
  config = streams.changed(memory_capacity=1000)
  num, rows = 64, np.array([7, 3])
  state = device_reward.init(config, reward_lib.IntrinsicStatistics(*range(5)))
  state = jax.tree.map(lambda x: jnp.repeat(x[None], num, axis=0), state)
  step = jax.jit(device_reward.step, static_argnums=0, donate_argnums=1)
  none = jnp.zeros(2, bool)
  given = features.Features(jnp.ones((2, streams.D)), jnp.ones(2))
  compiled = step.lower(config, state, rows, given, none, none).compile()
  space = compiled.memory_analysis().temp_size_in_bytes
  assert space < state.memory.embeddings.nbytes / 4
  before = jax.tree.map(np.array, state)
  _, after = compiled(state, rows, given, none, none)
  for x, y in zip(*map(jax.tree.leaves, (before, after)), strict=True):
    changed = np.any((x != y).reshape(num, -1), axis=1)
    assert set(np.flatnonzero(changed)) <= set(rows)
  memory, statistics = after
  np.testing.assert_array_equal(memory.inserted[rows], 1)
  np.testing.assert_array_equal(statistics.error_count[rows], 1)
