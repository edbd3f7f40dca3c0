import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme import config as config_lib
from bt_acme.core import networks as networks_lib
from bt_acme.core import r2d2_actor, types
from bt_acme.core.behavior_transfer import behavior_core
from bt_acme.core.intrinsic import networks, ngu_actor
from tests.core import toys

SHAPE, ACTIONS = (5, 5, 2), 3


@pytest.fixture(name='parts', scope='module')
def make_parts():
  """Returns the cores of R2D2 and NGU, their networks and parameters."""
  q_network = networks_lib.make_q_network(
    config_lib.NetworkConfig(torso_size=8, lstm_size=4, head_size=8),
    SHAPE,
    ACTIONS,
  )
  intrinsic = networks.make_networks(
    config_lib.IntrinsicConfig(embedding_size=6, rnd_size=4),
    observation_shape=SHAPE,
    frame_channels=1,
    num_actions=ACTIONS,
  )
  core = r2d2_actor.make_r2d2(q_network)
  return (
    core,
    ngu_actor.wrap(core, intrinsic),
    intrinsic,
    ngu_actor.arrange_params(
      toys.random_params(q_network.init), toys.random_params(intrinsic.init)
    ),
  )


def make_inputs(t, prev_reward=0.0):
  rng = np.random.default_rng(t)
  return types.AgentInput(
    observation=jnp.array(rng.integers(0, 11, SHAPE, np.uint8)),
    prev_action=jnp.int32(types.NO_ACTION if t == 0 else t % ACTIONS),
    prev_reward=jnp.float32(prev_reward),
    is_first=jnp.array(t == 0),
  )


def test_features_do_not_change_the_actions(parts):
  plain, wrapped, intrinsic, params = parts
  key, epsilon = jax.random.key(2), jnp.float32(0.5)
  state, plain_state = wrapped.init(key, epsilon), plain.init(key, epsilon)
  embed, error = jax.jit(intrinsic.embed), jax.jit(intrinsic.error)
  step, plain_step = (
    jax.jit(wrapped.select_action),
    jax.jit(plain.select_action),
  )
  for t in range(6):
    inputs = make_inputs(t)
    action, state = step(params, inputs, state)
    expected, plain_state = plain_step(params.agent, inputs, plain_state)
    assert action == expected
    extras = wrapped.get_extras(state)
    (features,) = extras.pop('features')
    plain_extras = plain.get_extras(plain_state)
    chex.assert_trees_all_equal(extras, plain_extras)
    np.testing.assert_allclose(
      features.embedding,
      embed(params.embedding, inputs.observation),
      rtol=1e-5,
      atol=1e-6,
    )
    np.testing.assert_allclose(
      features.error, error(params.rnd, inputs.observation), rtol=1e-5
    )


def test_state_keeps_its_shapes(parts):
  _, wrapped, _, params = parts
  state = wrapped.init(jax.random.key(2), jnp.float32(0.5))
  _, after = jax.eval_shape(
    wrapped.select_action, params, make_inputs(0), state
  )
  chex.assert_trees_all_equal_shapes_and_dtypes(after, state)


def test_a_behavior_receives_its_intrinsic_reward(parts):
  _, wrapped, _, params = parts
  behavior = ngu_actor.as_behavior(wrapped, 0.0)
  state = behavior.init(jax.random.key(3))
  expected_state = wrapped.init(jax.random.key(3), jnp.float32(0))
  step, expected_step = jax.jit(behavior.step), jax.jit(wrapped.select_action)
  for t in range(6):
    inputs = make_inputs(t, prev_reward=10.0 * (t % 2))
    action, state = step(
      params,
      behavior_core.BehaviorInput(
        inputs.observation,
        inputs.prev_action,
        inputs.is_first,
        starts_flight=jnp.array(False),
        host_inputs=inputs.prev_reward,
      ),
      state,
    )
    expected, expected_state = expected_step(params, inputs, expected_state)
    assert action == expected
    chex.assert_trees_all_equal(
      behavior.features(state), expected_state.features
    )
    chex.assert_trees_all_equal(
      state.agent.recurrent_state, expected_state.agent.recurrent_state
    )


def test_parameters_are_arranged_by_their_parts():
  parts = ('embedding', 'inverse_dynamics', 'rnd_predictor', 'rnd_target')
  params = ngu_actor.arrange_params({'w': 1}, {part: part for part in parts})
  assert params.embedding == 'embedding'
  assert set(params.rnd) == {'rnd_predictor', 'rnd_target'}
  without = ngu_actor.arrange_params({'w': 1}, {})
  assert without == ngu_actor.NGUParams({'w': 1}, {}, {})


def test_an_r2d2_policy_as_a_behavior_has_no_features(parts):
  behavior = ngu_actor.as_behavior(parts[0], 0.0)
  assert behavior.features(behavior.init(jax.random.key(0))) == ()


def test_an_embedding_is_updated_when_an_episode_starts():
  current = {'w': jnp.arange(6.0).reshape(3, 2)}
  fresh = {'w': jnp.float32([-1, -2])}
  is_first = jnp.array([False, True, False])
  after = ngu_actor.where_first(is_first, fresh, current)
  np.testing.assert_array_equal(after['w'], [[0, 1], [-1, -2], [4, 5]])
