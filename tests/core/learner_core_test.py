"""Tests whole learner steps: updates of both networks and their states."""

import types

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from bt_acme import config as config_lib
from bt_acme.core import learner_core
from tests.core import toys

_NETWORK = toys.q_network(toys.ACTIONS, toys.ACTIONS + 1)


@pytest.fixture(autouse=True)
def optax_promotes(strict_dtype_promotion):
  """Allows the implicit dtype promotion that Adam in optax needs."""
  with jax.numpy_dtype_promotion('standard'):
    yield


def _learner(intrinsic=None, **settings):
  fields = {'target_update_period': 3, 'learning_rate': 0.01, **settings}
  config = toys.agent_config(config_lib.LearnerConfig(**fields), 6)
  core = learner_core.make_learner_core(
    _NETWORK, config, num_stacked=1, intrinsic=intrinsic
  )
  return jax.jit(core.step, donate_argnums=0), core.init


@pytest.fixture(name='learner', scope='module')
def make_learner():
  return _learner()


def _toy_batch(**settings):
  batch = toys.batch(6, 4, num_extra=1, **settings)
  return jax.tree.map(jnp.asarray, batch)


def test_step_keeps_dtypes_and_is_finite(learner):
  step, init = learner
  state = init(jax.random.PRNGKey(0))
  batch = _toy_batch(real=[6, 1, 0, 3])
  batch = batch._replace(reward=1e6 * batch.reward)
  with jax.checking_leaks():
    new_state, priorities, metrics = step(state, batch, jnp.ones([4]))
  chex.assert_trees_all_equal_shapes_and_dtypes(new_state, state)
  for leaf in jax.tree.leaves(new_state.params):
    assert leaf.dtype == jnp.float32
  assert priorities.shape == (4,) and priorities.dtype == jnp.float32
  assert priorities[2] == 0
  assert np.all(np.asarray(priorities)[[0, 1, 3]] > 0)
  assert all(value.shape == () for value in metrics.values())
  for leaf in jax.tree.leaves((new_state, priorities, metrics)):
    assert np.all(np.isfinite(leaf))


def test_target_network_is_copied_exactly_at_multiples_of_its_period(learner):
  """The state can be donated, and the caller's parameters survive."""
  step, init = learner
  given = _NETWORK.init(jax.random.PRNGKey(5))
  expected = first = jax.tree.map(np.array, given)
  state = init(jax.random.PRNGKey(0), given)
  for loaded in (state.params, state.target_params):
    chex.assert_trees_all_equal(loaded, first)
  for learner_step in range(1, 8):
    state, _, _ = step(state, _toy_batch(), jnp.ones([4]))
    assert state.learner_steps == learner_step
    if learner_step in (3, 6):
      expected = jax.tree.map(np.array, state.params)
    chex.assert_trees_all_equal(state.target_params, expected)
    moved = np.any(state.params['value'] != state.target_params['value'])
    assert moved == (learner_step not in (3, 6))
  chex.assert_trees_all_equal(given, first)


def test_gradient_is_clipped_before_adam():
  step, init = _learner(max_gradient_norm=0.01, target_update_period=1000)
  state = init(jax.random.PRNGKey(0))
  batch = _toy_batch()
  _, gradients = toys.loss_and_gradient(_NETWORK, 6)(
    state.params, state.target_params, batch, batch.frames, jnp.ones([4])
  )
  norm = optax.tree.norm(gradients)
  assert norm > 0.1
  before = jax.tree.map(np.array, state.params)
  new_state, _, metrics = step(state, batch, jnp.ones([4]))
  np.testing.assert_allclose(metrics['gradient_norm'], norm, rtol=1e-5)
  # Adam's first step is -lr g / (|g| + eps), which reveals the clipped g.
  for name, gradient in gradients.items():
    clipped = np.asarray(gradient * 0.01 / norm)
    np.testing.assert_allclose(
      new_state.params[name] - before[name],
      -0.01 * clipped / (np.abs(clipped) + 1e-4),
      rtol=1e-3,
      atol=1e-5,
    )


def test_random_numbers_depend_on_seed_and_step_number():
  """The loss of the intrinsic networks gets a different key in each step."""

  def loss(params, observations, action, valid, key):
    del observations, action, valid
    draw = jax.random.uniform(key)
    return draw * params['w'], {'draw': draw}

  intrinsic = types.SimpleNamespace(
    config=config_lib.IntrinsicConfig(intrinsic_learning_rate=0.1),
    init=lambda key: {'w': jnp.zeros([])},
    sequence_loss=loss,
  )
  step, init = _learner(intrinsic)
  runs = []
  for seed in (0, 0, 1):
    state, draws = init(jax.random.key(seed)), []
    for _ in range(3):
      before = float(state.intrinsic_params['w'])
      state, _, metrics = step(state, _toy_batch(), jnp.ones([4]))
      draws.append(float(metrics['draw']))
      # Adam moves by its own learning rate, whose gradient is the draw.
      assert 0.05 < before - state.intrinsic_params['w'] < 0.15
    runs.append(draws)
  assert runs[0] == runs[1]
  assert len({*runs[0], *runs[2]}) == 6
