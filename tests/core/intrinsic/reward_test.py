import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme import config as config_lib
from bt_acme.core.intrinsic import reward as reward_lib
from tests.reference import intrinsic as reference

T, D = 60, 4
CONFIG = config_lib.IntrinsicConfig(
  embedding_size=D, memory_capacity=20, num_neighbors=3
)


def changed(**changes):
  return dataclasses.replace(CONFIG, **changes)


def make_stream(kind='random', num_environments=5, seed=0):
  """Embeddings [T, N, D], errors [T, N], starts of episodes [T, N]."""
  rng = np.random.default_rng(seed)
  embeddings = np.maximum(rng.normal(size=(T, num_environments, D)), 0)
  errors = rng.exponential(size=(T, num_environments)) ** 2
  if kind == 'identical':
    embeddings[:], errors[:] = 0.5, 2.0
  elif kind == 'far':
    embeddings *= 1e6
    errors *= 1e9
  elif kind == 'revisits':
    embeddings = np.round(embeddings)
  is_first = rng.random((T, num_environments)) < 0.05
  is_first[0] = True
  return np.float32(embeddings), np.float32(errors), is_first


def on_host(config, stream, active=None):
  """Rewards [T, N] and the reward's object."""
  embeddings, errors, is_first = stream
  reward = reward_lib.IntrinsicReward(config, errors.shape[1])
  result = [
    reward.step(*row, active=None if active is None else active[t])
    for t, row in enumerate(zip(embeddings, errors, is_first, strict=True))
  ]
  return np.stack(result), reward


@functools.lru_cache
def jitted(config):
  def run(embeddings, errors, is_first):  # of one environment
    def take(state, row):
      reward, state = reward_lib.step(config, state, *row)
      return state, reward

    return jax.lax.scan(
      take, reward_lib.init(config), (embeddings, errors, is_first)
    )

  return jax.jit(jax.vmap(run, in_axes=1, out_axes=(0, 1)))


def expected_rewards(config, stream):
  columns = [
    reference.rewards(config, *(x[:, i] for x in stream))
    for i in range(stream[1].shape[1])
  ]
  return [np.stack(x, axis=1) for x in zip(*columns, strict=True)]


CONFIGS = [
  CONFIG,
  changed(alpha_offset=1.0),
  changed(distance_decay=0.05),
  changed(statistics_scope='episode'),
  changed(statistics_scope='episode', distance_decay=0.05),
  changed(num_neighbors=30),
  changed(num_neighbors=70, memory_capacity=90, max_similarity=4.0),
  changed(memory_capacity=1),
  changed(error_deviation='floor'),
  changed(intrinsic_reward='rnd'),
  changed(intrinsic_reward='rnd', error_deviation='floor'),
  changed(intrinsic_reward='rnd', statistics_scope='episode'),
  changed(intrinsic_reward='constant', constant_reward=0.5),
]


@pytest.mark.parametrize('config', CONFIGS)
@pytest.mark.parametrize('kind', ['random', 'identical', 'far', 'revisits'])
def test_rewards_match_reference(config, kind):
  stream = make_stream(kind)
  expected, _, scales = expected_rewards(config, stream)
  host, reward = on_host(config, stream)
  assert host.dtype == np.float32
  assert host.shape == expected.shape == (T, 5)
  np.testing.assert_allclose(host, expected, rtol=1e-4)
  state, device = jitted(config)(*stream)
  assert device.dtype == jnp.float32
  np.testing.assert_allclose(device, expected, rtol=2e-3)
  if config.intrinsic_reward == 'ngu':
    np.testing.assert_allclose(
      reward.statistics().distance_mean, scales[-1], rtol=1e-5
    )
  for field, other in zip(state.statistics, reward.statistics(), strict=True):
    np.testing.assert_allclose(field, other, rtol=1e-4)


def test_the_reward_is_not_always_the_same():
  rewards, novelties, _ = expected_rewards(CONFIG, make_stream())
  assert len(np.unique(rewards)) > 200
  assert np.sum(rewards > 1.001 * novelties) > 20  # alpha above 1
  limited = rewards > (CONFIG.reward_scale_limit - 1e-3) * novelties
  assert np.sum(limited & (novelties > 0)) > 0
  similar = changed(num_neighbors=70, memory_capacity=90, max_similarity=4.0)
  _, novelties, _ = expected_rewards(similar, make_stream('identical'))
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
  host = reward_lib.IntrinsicReward(config, 1)
  rewards, scales = [], []
  for row in zip(*stream, strict=True):
    rewards.append(host.step(*row))
    scales.append(host.statistics().distance_mean[0])
  np.testing.assert_allclose(rewards, expected, rtol=1e-6)
  np.testing.assert_allclose(scales[1:], [1, 1.333333, 1, 3.285714], rtol=1e-6)
  np.testing.assert_allclose(jitted(config)(*stream)[1], expected, rtol=1e-5)


@pytest.mark.parametrize('alpha_offset', [0.0, 1.0])
@pytest.mark.parametrize('kind', ['random', 'revisits', 'far'])
def test_the_modulator_stays_within_its_limits(alpha_offset, kind):
  config = changed(alpha_offset=alpha_offset)
  stream = make_stream(kind)
  rewards, _ = on_host(config, stream)
  calm, _ = on_host(config, (stream[0], np.ones_like(stream[1]), stream[2]))
  assert np.any(rewards != calm)
  assert np.all(rewards >= calm)
  assert np.all(rewards <= config.reward_scale_limit * calm * (1 + 1e-6))


@pytest.mark.parametrize('config', CONFIGS)
def test_an_environment_does_not_depend_on_its_neighbors(config):
  stream = make_stream(num_environments=16)
  together, _ = on_host(config, stream)
  for i in range(16):
    alone, _ = on_host(config, tuple(x[:, i : i + 1] for x in stream))
    np.testing.assert_array_equal(alone[:, 0], together[:, i])


def test_an_episode_starts_with_an_empty_memory_and_old_statistics():
  embeddings, errors, is_first = make_stream()
  is_first[:] = False
  is_first[[0, 40]] = True
  rewards, reward = on_host(CONFIG, (embeddings, errors, is_first))
  np.testing.assert_array_equal(rewards[[0, 40]], 0)
  assert np.all(np.delete(rewards, [0, 40], axis=0) > 0)
  np.testing.assert_array_equal(reward.statistics().error_count, T)
  fresh, _ = on_host(CONFIG, (embeddings[40:], errors[40:], is_first[40:]))
  assert not np.allclose(fresh[1:], rewards[41:])


@pytest.mark.parametrize('kind', ['ngu', 'rnd'])
def test_statistics_of_an_episode_alone_forget_the_one_before(kind):
  config = changed(statistics_scope='episode', intrinsic_reward=kind)
  embeddings, errors, is_first = make_stream()
  is_first[:] = False
  is_first[[0, 40]] = True
  rewards, reward = on_host(config, (embeddings, errors, is_first))
  fresh, _ = on_host(config, (embeddings[40:], errors[40:], is_first[40:]))
  np.testing.assert_array_equal(rewards[40:], fresh)
  np.testing.assert_array_equal(reward.statistics().error_count, T - 40)


def test_statistics_restored_continue_the_rewards():
  embeddings, errors, is_first = make_stream()
  is_first[:] = False
  is_first[[0, 40]] = True
  rewards, _ = on_host(CONFIG, (embeddings, errors, is_first))
  _, before = on_host(CONFIG, (embeddings[:40], errors[:40], is_first[:40]))
  saved = before.statistics()
  resumed = reward_lib.IntrinsicReward(CONFIG, 5)
  resumed.restore(saved)
  states = [
    reward_lib.init(
      CONFIG, reward_lib.IntrinsicStatistics(*(x[i] for x in saved))
    )
    for i in range(5)
  ]
  for t in range(40, T):
    actual = resumed.step(embeddings[t], errors[t], is_first[t])
    np.testing.assert_array_equal(actual, rewards[t])
    for i in range(5):
      reward, states[i] = reward_lib.step(
        CONFIG,
        states[i],
        *map(jnp.array, (embeddings[t, i], errors[t, i])),
        jnp.array(is_first[t, i]),
      )
      np.testing.assert_allclose(reward, rewards[t, i], rtol=1e-3)


def test_restored_and_returned_statistics_are_copies():
  _, reward = on_host(CONFIG, make_stream())
  saved = reward.statistics()
  other = reward_lib.IntrinsicReward(CONFIG, 5)
  other.restore(saved)
  for field in saved:
    field[:] = -1
  for fields in (reward.statistics(), other.statistics()):
    assert all(np.all(field >= 0) for field in fields)


def test_merged_statistics_are_those_of_all_observations():
  stream = make_stream()
  _, reward = on_host(CONFIG, stream)
  merged = reward_lib.merge_statistics(reward.statistics())
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
  for_many = reward_lib.IntrinsicReward(CONFIG, 3)
  for_many.restore(merged)
  for field, value in zip(for_many.statistics(), merged, strict=True):
    np.testing.assert_array_equal(field, np.full(3, value))


def test_statistics_of_other_environments_are_refused():
  statistics = reward_lib.IntrinsicReward(CONFIG, 4).statistics()
  with pytest.raises(ValueError, match='of 4 environments cannot go on in 16'):
    reward_lib.IntrinsicReward(CONFIG, 16).restore(statistics)


@pytest.mark.parametrize('config', CONFIGS)
def test_an_inactive_environment_leaves_no_trace(config):
  stream = make_stream()
  active = np.random.default_rng(1).random((T, 5)) < 0.8
  stream[2][1:] = False
  active[0] = True
  for x in stream[:2]:
    x[~active] = 1e3
  rewards, reward = on_host(config, stream, active)
  np.testing.assert_array_equal(rewards[~active], 0)
  for i in range(5):
    kept = tuple(x[active[:, i], i : i + 1] for x in stream)
    alone, other = on_host(config, kept)
    np.testing.assert_array_equal(rewards[active[:, i], i], alone[:, 0])
    for field, value in zip(
      reward.statistics(), other.statistics(), strict=True
    ):
      np.testing.assert_array_equal(field[i], value[0])


def test_eager_matches_jit():
  stream = make_stream(num_environments=1)
  _, expected = jitted(CONFIG)(*stream)
  state = reward_lib.init(CONFIG)
  for t in range(30):
    row = [jnp.array(x[t, 0]) for x in stream]
    reward, state = reward_lib.step(CONFIG, state, *row)
    np.testing.assert_allclose(reward, expected[t, 0], rtol=1e-4)


@pytest.mark.parametrize('reward_observation', ['current', 'next'])
def test_rows_are_stepped_as_one_is(reward_observation):
  config = changed(reward_observation=reward_observation)
  num, rows = 6, np.array([4, 0, 3])
  states = [reward_lib.init(config) for _ in range(num)]
  together = jax.tree.map(lambda *x: jnp.stack(x), *states)
  step = jax.jit(functools.partial(reward_lib.step_rows, config))
  for t, row in enumerate(zip(*make_stream(num_environments=3), strict=True)):
    is_last = np.array([t % 7 == 6, False, t % 5 == 4])
    rewarded, together = step(together, rows, *row, is_last)
    for n, i in enumerate(rows):
      reward, after = reward_lib.step(
        config, states[i], *(jnp.array(x[n]) for x in row)
      )
      if is_last[n] and reward_observation == 'current':
        reward, after = 0.0, after._replace(statistics=states[i].statistics)
      states[i] = after
      np.testing.assert_allclose(rewarded.reward[n], reward, rtol=1e-4)
  jax.tree.map(
    functools.partial(np.testing.assert_allclose, rtol=1e-4),
    together,
    jax.tree.map(lambda *x: jnp.stack(x), *states),
  )


def test_memories_are_not_copied():
  config = changed(memory_capacity=1000)
  num, rows = 64, jnp.arange(2)
  state = jax.tree.map(
    lambda x: jnp.repeat(x[None], num, axis=0), reward_lib.init(config)
  )
  step = jax.jit(
    functools.partial(reward_lib.step_rows, config), donate_argnums=0
  )
  none = jnp.zeros(2, bool)
  compiled = step.lower(
    state, rows, jnp.ones((2, D)), jnp.ones(2), none, none
  ).compile()
  space = compiled.memory_analysis().temp_size_in_bytes
  assert space < state.memory.embeddings.nbytes / 4
