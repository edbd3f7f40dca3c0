"""Tests the Q-network: sizes, values in float64, steps and unrolls."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme import config as config_lib
from bt_acme.core import networks, types
from tests.core import toys
from tests.reference import network as reference
from tests.reference import value_rescaling

_SHAPE = (5, 6, 2)


@functools.lru_cache
def _built(num_extra=0, shape=_SHAPE, **settings):
  """Returns a small network, its parameters and its jitted unroll."""
  network = toys.small_network(shape, num_extra, **settings)
  params = toys.random_params(network.init, scale=0.2)
  return network, params, toys.unroll_of(network)


def _count(params, module):
  return sum(
    int(np.prod(leaf.shape))
    for name, values in params.items()
    if name.startswith(module)
    for leaf in values.values()
  )


# VALID convolutions give 20x20x32, 9x9x64 and 7x7x64 features in the paper. The
# smallest images give one pixel.
@pytest.mark.parametrize(
  'torso, shape, extra, weights, features',
  [
    ('auto', (84, 84, 4), 0, 77_984, 3136),
    ('auto', (84, 84, 4), 1, 77_984, 3136),
    ('auto', (36, 40, 1), 0, 71_840, 64),
    ('nature', (36, 36, 1), 1, 71_840, 64),
    ('workshop', (20, 20, 1), 0, 9_264, 32),
    ('small', (3, 3, 1), 1, 2_160, 32),
    ('auto', (35, 84, 1), 0, 2_160, 17 * 41 * 32),
  ],
)
def test_sizes(torso, shape, extra, weights, features):
  network = networks.make_q_network(
    config_lib.NetworkConfig(torso=torso), shape, 18, extra
  )
  with toys.enable_x64():  # It does not change the parameters.
    params = jax.eval_shape(network.init, jax.random.PRNGKey(0))
  assert {x.dtype.name for x in jax.tree.leaves(params)} == {'float32'}
  assert _count(params, 'torso/conv') == weights
  assert params['torso/linear']['w'].shape == (features, 512)
  assert params['lstm/linear']['w'].shape == (512 + 18 + 1 + 512, 4 * 512)
  assert _count(params, 'head') == 535_059 + extra * (512 + 1)
  assert network.num_choices == 18 + extra


@pytest.mark.parametrize(
  'torso, shape, strides, divisor',
  [
    ('small', _SHAPE, (1, 2), 10.0),
    ('nature', (36, 44, 2), (4, 2, 1), 255.0),
    ('workshop', (20, 28, 2), (4, 2), 255.0),
  ],
)
def test_values_equal_float64(torso, shape, strides, divisor):
  network, params, unroll = _built(num_extra=1, torso=torso, shape=shape)
  observations, *others = toys.network_inputs(6, 2, 4, shape)
  inputs = observations * np.uint8(divisor / 10), *others
  actual, _ = unroll(params, *inputs, toys.zero_state(network, 2))
  assert actual.shape == (6, 2, 5)
  for b in range(2):
    expected = reference.q_values(
      params,
      *(x[:, b] for x in inputs),
      num_actions=4,
      strides=strides,
      divisor=divisor,
    )
    np.testing.assert_allclose(actual[:, b], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize('lstm_size', [0, 6])
def test_steps_are_the_rows_of_an_unroll(lstm_size):
  network, params, unroll = _built(num_extra=1, lstm_size=lstm_size)
  inputs = toys.network_inputs(5, 3, 4, _SHAPE)
  unrolled, last = unroll(params, *inputs, toys.zero_state(network, 3))
  assert last.hidden.shape == (3, lstm_size)
  step = jax.jit(network.step)
  for b in range(3):
    state = network.initial_state()
    for t in range(5):
      agent_input = types.AgentInput(
        *(jnp.asarray(x[t, b]) for x in inputs), jnp.asarray(t == 0)
      )
      q_values, state = step(params, agent_input, state)
      assert q_values.shape == (5,)
      np.testing.assert_allclose(q_values, unrolled[t, b], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(state.hidden, last.hidden[b], atol=1e-6)
    np.testing.assert_allclose(state.cell, last.cell[b], atol=1e-6)


@pytest.mark.parametrize(
  'kind, scale',
  [
    ('tanh', np.tanh),
    ('raw', lambda x: x),
    ('signed_hyperbolic', lambda x: value_rescaling.rescale(x, 1e-3)),
  ],
)
def test_previous_reward_enters_as_configured(kind, scale):
  def q_values(kind, reward):
    network, params, unroll = _built(lstm_size=0, reward_input=kind)
    observation, prev_action, _ = toys.network_inputs(1, 1, 4, _SHAPE)
    return unroll(
      params,
      observation,
      prev_action,
      jnp.full([1, 1], reward, jnp.float32),
      toys.zero_state(network, 1),
    )[0]

  np.testing.assert_allclose(
    q_values(kind, -3.0), q_values('raw', scale(-3.0)), rtol=1e-5
  )


def test_bfloat16_torso_computes_nearly_the_same_from_float32_parameters():
  half_network, params, _ = _built(torso_dtype='bfloat16')
  full_network, full_params, _ = _built()
  inputs = toys.network_inputs(3, 2, 4, _SHAPE)
  for leaf in jax.tree.leaves(params):
    assert leaf.dtype == jnp.float32
  chex.assert_trees_all_equal(params, full_params)

  def loss(params, network):
    unroll, state = toys.unroll_of(network), toys.zero_state(network, 2)
    q_values, _ = unroll(params, *inputs, state)
    return jnp.sum(q_values**2), q_values

  gradient = jax.jit(jax.grad(loss, has_aux=True), static_argnums=1)
  actual, q_values = gradient(params, half_network)
  expected, full_q_values = gradient(params, full_network)
  assert q_values.dtype == jnp.float32
  np.testing.assert_allclose(q_values, full_q_values, atol=0.02)
  assert np.any(np.asarray(q_values) != np.asarray(full_q_values))
  for x, y in zip(*map(jax.tree.leaves, (actual, expected)), strict=True):
    assert x.dtype == jnp.float32
    np.testing.assert_allclose(x, y, atol=0.05 * np.abs(y).max() + 1e-3)


@pytest.mark.parametrize(
  'kind, shape',
  [
    ('nature', (35, 84, 4)),
    ('workshop', (84, 19, 4)),
    ('small', (2, 9, 3)),
    ('auto', (84, 84)),
    ('auto', ()),
  ],
)
def test_unsupported_shapes_are_errors(kind, shape):
  with pytest.raises(ValueError, match='torso=.*at least.* Use a') as error:
    networks.torso_kind(kind, shape)
  assert str(shape) in str(error.value)
