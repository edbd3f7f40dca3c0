"""Tests rewards and memories of many environments in NumPy."""

import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme.core.intrinsic import host_reward
from bt_acme.core.intrinsic import reward_statistics as reward_lib
from tests.core.intrinsic import streams


@pytest.mark.parametrize('in_jax', [False, True])
def test_restored_statistics_continue_the_rewards(in_jax):
  stream = streams.make_stream()
  stream[2][:] = False
  stream[2][[0, 40]] = True  # Two episodes.
  reward = streams.of(streams.CONFIG)
  streams.on_host(reward, tuple(x[:40] for x in stream))
  rest = tuple(x[40:] for x in stream)
  saved = reward.statistics()
  expected = streams.on_host(reward, rest)
  if in_jax:
    saved = map(jnp.asarray, saved)
  resumed = host_reward.HostReward(streams.CONFIG, streams.N, tuple(saved))
  np.testing.assert_allclose(
    streams.on_host(resumed, rest), expected, rtol=1e-4 if in_jax else 0
  )


def test_statistics_of_other_environments_are_an_error():
  statistics = streams.of(streams.CONFIG, 4).statistics()
  with pytest.raises(ValueError, match=r'actor=16, .* envs_per_actor=4\.'):
    streams.of(streams.CONFIG, 16).restore_statistics(statistics)
  one = reward_lib.IntrinsicStatistics(*range(5))
  for_many = host_reward.HostReward(streams.CONFIG, 3, one)
  expected = np.transpose([range(5)] * 3)
  np.testing.assert_array_equal(for_many.statistics(), expected)


@pytest.mark.parametrize('observation', ['current', 'next'])
@pytest.mark.parametrize('kind', ['ngu', 'rnd'])
def test_last_observations_count_as_configured_and_skipped_ones_never(
  observation, kind
):
  """Observations that are not rewarded get 0 and change nothing."""
  config = streams.changed(
    reward_observation=observation, intrinsic_reward=kind, distance_decay=0.05
  )
  stream = streams.make_stream()
  is_last = np.random.default_rng(1).random(stream[2].shape) < 0.2
  stream[2][1:] = is_last[:-1]
  # In each environment, every second episode is skipped.
  skipped = np.cumsum(stream[2], axis=0) % 2 == 0
  stream[0][is_last | skipped] = 1e3
  reward = streams.of(config)
  made = streams.on_host(reward, stream, is_last, skipped)
  counts = (~is_last | (observation == 'next')) & ~skipped
  np.testing.assert_array_equal(made[~counts], 0)
  (_, statistics), (on_device, _) = streams.on_device(config)(
    *stream, is_last, skipped
  )
  np.testing.assert_allclose(on_device, made, rtol=2e-3)
  np.testing.assert_allclose(statistics, reward.statistics(), rtol=1e-4)
  for i in range(streams.N):
    alone = streams.of(config, 1)
    kept = tuple(x[counts[:, i], i : i + 1] for x in stream)
    expected = streams.on_host(alone, kept)[:, 0]
    np.testing.assert_array_equal(made[counts[:, i], i], expected)
    np.testing.assert_array_equal(
      np.stack(reward.statistics())[:, i], np.stack(alone.statistics())[:, 0]
    )


def test_rewards_of_a_device_replace_the_statistics():
  reward = streams.of(streams.CONFIG, 2)
  statistics = np.arange(10, dtype=np.float32).reshape(5, 2)
  for alpha in (None, np.float32([0.5, 2.0])):
    made = reward_lib.Rewarded(
      np.float32([3, 4]), reward_lib.IntrinsicStatistics(*statistics), alpha
    )
    taken = reward.take(made, np.zeros(2, bool), np.zeros(2, bool))
    np.testing.assert_array_equal(taken, [3, 4])
    np.testing.assert_array_equal(reward.statistics(), statistics)
    assert all(field.dtype == np.float64 for field in reward.statistics())
    assert not any(map(len, reward.memories))
    assert reward.alpha is alpha
