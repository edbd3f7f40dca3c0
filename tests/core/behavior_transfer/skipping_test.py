"""Tests batched steps that skip environments against steps of all of them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme.core import arrays, leaves
from bt_acme.core.behavior_transfer import behavior_core, skipping


def make_step(computed):
  """Returns a step with a random key and a dense layer; counts its calls."""
  random = behavior_core.uniform(7)

  def step(params, inputs, state):
    jax.debug.callback(lambda: computed.append(0))
    action, own = random.step((), inputs, state[0])
    hidden = jnp.tanh(params @ state[1] + inputs.observation)
    return action, (own, hidden)

  return random.init, step


@pytest.mark.parametrize('num, block', [(1, 4), (5, 4), (16, 4), (70, 9)])
def test_skipped_environments_keep_their_state_and_cost_nothing(num, block):
  rng = np.random.default_rng(num)
  computed = []
  init, step = make_step(computed)
  params = jnp.asarray(rng.normal(size=[3, 3]), jnp.float32)
  keys = jax.random.split(jax.random.key(0), num)
  state = jax.vmap(init)(keys), jnp.zeros([num, 3])
  # The previous reward is the same in all environments.
  axes = (None, behavior_core.BehaviorInput(0, 0, 0, 0, prev_reward=None), 0)
  every = jax.jit(jax.vmap(step, in_axes=axes))
  some = jax.jit(jax.vmap(skipping.skip_where_idle(step), in_axes=(0, *axes)))
  for count in {0, 1, num // 3, num}:
    acts = np.zeros(num, bool)
    acts[rng.permutation(num)[:count]] = True
    inputs = behavior_core.BehaviorInput(
      observation=jnp.asarray(rng.normal(size=[num, 3]), jnp.float32),
      prev_action=jnp.zeros(num, jnp.int32),
      is_first=jnp.zeros(num, bool),
      starts_flight=jnp.zeros(num, bool),
      prev_reward=jnp.zeros([]),
    )
    proposals, after = every(params, inputs, state)
    jax.effects_barrier()
    computed.clear()
    found, new = some(acts, params, inputs, state)
    jax.effects_barrier()
    assert len(computed) == -(-count // block)
    np.testing.assert_array_equal(found, np.where(acts, proposals, 0))
    expected = jax.vmap(arrays.tree_where)(acts, after, state)
    for x, y in zip(*map(leaves.tree_leaves, (new, expected)), strict=True):
      np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)
    state = new
