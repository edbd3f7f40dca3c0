"""Tests rewards and memories of many environments in JAX.

`rewards_test` and `host_reward_test` compare their values.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from bt_acme.core.intrinsic import device_reward, features
from bt_acme.core.intrinsic import reward_statistics as reward_lib
from tests.core.intrinsic import streams


def test_other_environments_stay_unchanged_and_memories_are_not_copied():
  config = streams.changed(memory_capacity=1000)
  num, rows = 64, np.array([7, 3])
  initial = device_reward.init(
    config, reward_lib.IntrinsicStatistics(*range(5))
  )
  state = jax.tree.map(lambda x: jnp.repeat(x[None], num, axis=0), initial)
  step = jax.jit(
    functools.partial(device_reward.step, config), donate_argnums=0
  )
  none = jnp.zeros(2, bool)
  given = features.Features(jnp.ones((2, streams.D)), jnp.ones(2))
  compiled = step.lower(state, rows, given, none, none).compile()
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
