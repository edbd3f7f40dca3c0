"""Tests rewards and memories of one or many environments in JAX."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme.core.intrinsic import device_reward, features
from bt_acme.core.intrinsic import reward as reward_lib
from tests.core.intrinsic import streams


def row_of(stream, t, i):
  """Returns features and is_first of one observation of one environment."""
  embedding, error, is_first = (jnp.array(x[t, i]) for x in stream)
  return features.Features(embedding, error), is_first


@pytest.mark.parametrize('reward_observation', ['current', 'next'])
def test_rows_equal_separate_steps(reward_observation):
  config = streams.changed(reward_observation=reward_observation)
  num, rows = 6, np.array([4, 0, 3])
  states = [device_reward.init(config) for _ in range(num)]
  together = jax.tree.map(lambda *x: jnp.stack(x), *states)
  step = jax.jit(functools.partial(device_reward.step_rows, config))
  step_one = jax.jit(functools.partial(device_reward.step, config))
  stream = streams.make_stream(num_environments=3)
  for t, (*given, is_first) in enumerate(zip(*stream, strict=True)):
    is_last = np.array([t % 7 == 6, False, t % 5 == 4])
    rewarded, together = step(
      together, rows, features.Features(*given), is_first, is_last
    )
    for n, i in enumerate(rows):
      one, after = step_one(states[i], *row_of(stream, t, n))
      reward = one.reward
      if is_last[n] and reward_observation == 'current':
        reward, after = 0.0, after._replace(statistics=states[i].statistics)
      states[i] = after
      np.testing.assert_allclose(rewarded.reward[n], reward, rtol=1e-4)
      np.testing.assert_allclose(rewarded.alpha[n], one.alpha, rtol=1e-4)
  chex.assert_trees_all_close(
    together, jax.tree.map(lambda *x: jnp.stack(x), *states), rtol=1e-4
  )


def test_memories_are_not_copied():
  config = streams.changed(memory_capacity=1000)
  num, rows = 64, jnp.arange(2)
  state = jax.tree.map(
    lambda x: jnp.repeat(x[None], num, axis=0), device_reward.init(config)
  )
  step = jax.jit(
    functools.partial(device_reward.step_rows, config), donate_argnums=0
  )
  none = jnp.zeros(2, bool)
  compiled = step.lower(
    state,
    rows,
    features.Features(jnp.ones((2, streams.D)), jnp.ones(2)),
    none,
    none,
  ).compile()
  space = compiled.memory_analysis().temp_size_in_bytes
  assert space < state.memory.embeddings.nbytes / 4


def test_restored_statistics_continue_the_rewards():
  stream, rewards, saved = streams.interrupted(40)
  step = jax.jit(functools.partial(device_reward.step, streams.CONFIG))
  for i in range(5):
    state = device_reward.init(
      streams.CONFIG, reward_lib.IntrinsicStatistics(*(x[i] for x in saved))
    )
    for t in range(40, streams.T):
      rewarded, state = step(state, *row_of(stream, t, i))
      np.testing.assert_allclose(rewarded.reward, rewards[t, i], rtol=1e-3)
