"""Tests rewards and memories of many environments in NumPy."""

import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme.core.intrinsic import features, host_reward
from bt_acme.core.intrinsic import reward as reward_lib
from tests.core.intrinsic import streams
from tests.reference import intrinsic as reference


def test_restored_statistics_continue_the_rewards():
  (embeddings, errors, is_first), rewards, saved = streams.interrupted(40)
  resumed = host_reward.HostReward(streams.CONFIG, 5)
  resumed.restore_statistics(saved)
  for t in range(40, streams.T):
    given = features.Features(embeddings[t], errors[t])
    np.testing.assert_array_equal(resumed.step(given, is_first[t]), rewards[t])


def test_restored_and_returned_statistics_are_copies():
  _, reward = streams.on_host(streams.CONFIG, streams.make_stream())
  saved = reward.statistics()
  other = host_reward.HostReward(streams.CONFIG, 5)
  other.restore_statistics(saved)
  for field in saved:
    field[:] = -1
  for fields in (reward.statistics(), other.statistics()):
    assert all(np.all(field >= 0) for field in fields)


def test_statistics_of_other_environments_are_an_error():
  statistics = host_reward.HostReward(streams.CONFIG, 4).statistics()
  with pytest.raises(ValueError, match=r'actor=16, .* envs_per_actor=4\.'):
    host_reward.HostReward(streams.CONFIG, 16).restore_statistics(statistics)


@pytest.mark.parametrize('config', streams.CONFIGS)
def test_an_inactive_environment_changes_nothing(config):
  stream = streams.make_stream()
  active = np.random.default_rng(1).random((streams.T, 5)) < 0.8
  stream[2][1:] = False
  active[0] = True
  for x in stream[:2]:
    x[~active] = 1e3
  rewards, reward = streams.on_host(config, stream, active)
  np.testing.assert_array_equal(rewards[~active], 0)
  for i in range(5):
    kept = tuple(x[active[:, i], i : i + 1] for x in stream)
    alone, other = streams.on_host(config, kept)
    np.testing.assert_array_equal(rewards[active[:, i], i], alone[:, 0])
    found, expected = reward.statistics(), other.statistics()
    np.testing.assert_array_equal(
      np.stack(found)[:, i], np.stack(expected)[:, 0]
    )


@pytest.mark.parametrize('observation', ['current', 'next'])
def test_rewarded_observations_follow_the_configuration(observation):
  config = streams.changed(reward_observation=observation)
  embeddings, errors, is_first = streams.make_stream()
  is_last = np.append(is_first[1:], is_first[:1], axis=0)
  assert is_last[:-1].any()
  reward, expected = (
    host_reward.HostReward(config, 5),
    host_reward.HostReward(config, 5),
  )
  for t in range(streams.T):
    given = features.Features(embeddings[t], errors[t])
    np.testing.assert_array_equal(
      reward.take(
        features.Features(*map(jnp.array, given)), is_first[t], is_last[t]
      ),
      expected.step(given, is_first[t], ~is_last[t] | (observation == 'next')),
    )


def test_rewards_of_a_device_replace_the_statistics():
  reward = host_reward.HostReward(streams.CONFIG, 2)
  statistics = np.arange(10, dtype=np.float32).reshape(5, 2)
  made = reward_lib.Rewarded(
    np.float32([3, 4]), reward_lib.IntrinsicStatistics(*statistics)
  )
  taken = reward.take(made, np.zeros(2, bool), np.zeros(2, bool))
  np.testing.assert_array_equal(taken, [3, 4])
  np.testing.assert_array_equal(reward.statistics(), statistics)
  assert all(field.dtype == np.float64 for field in reward.statistics())
  assert not any(map(len, reward.memories))
  assert reward.alpha is None


@pytest.mark.parametrize('decay', [0.0, 0.1])
def test_the_modulator_of_the_newest_observations(decay):
  config = streams.changed(error_decay=decay, alpha_offset=1.0)
  embeddings, errors, is_first = streams.make_stream(num_environments=2)
  reward = host_reward.HostReward(config, 2)
  assert reward.alpha is None
  expected = np.stack(
    [reference.modulators(config, errors[:, i]) for i in range(2)], axis=1
  )
  assert np.any(expected > 1) and np.any(expected < 1)
  for t in range(streams.T):
    given = features.Features(embeddings[t], errors[t])
    reward.step(given, is_first[t])
    np.testing.assert_allclose(reward.alpha, expected[t], rtol=1e-4, atol=1e-6)
  # The rewards of a device include the modulator.
  made = reward_lib.Rewarded(
    np.ones(2), reward.statistics(), np.float32([0.5, 2.0])
  )
  reward.take(made, np.zeros(2, bool), np.zeros(2, bool))
  np.testing.assert_array_equal(reward.alpha, [0.5, 2.0])
