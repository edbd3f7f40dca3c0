"""Tests R2D2 acting: exploration, probabilities, states and episodes."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme.core import r2d2_actor, types
from tests.core import toys
from tests.reference import acting as reference

_A = 4
_NETWORK = toys.q_network(_A, _A)
_PARAMS = toys.random_params(_NETWORK.init, scale=1.0)
_CORE = r2d2_actor.make_r2d2(_NETWORK)


def _run(epsilon, shown, seed=0, params=_PARAMS):
  state = _CORE.init(jax.random.PRNGKey(seed), epsilon)
  return toys.rollout(_CORE, params, state, shown)


@pytest.mark.parametrize(
  'margin, temperature', [(0.0, 0.0), (0.5, 0.0), (3.0, 0.0), (0.5, 0.3)]
)
def test_frequencies_and_probabilities_match_reference(margin, temperature):
  """Choices are greedy, random, or drawn by the temperature."""
  network = toys.q_network(_A - 2, _A)
  core = r2d2_actor.make_r2d2(
    network, extra_action_margin=margin, choice_temperature=temperature
  )
  params = toys.random_params(network.init, scale=1.0)
  observation, reward, _ = (x[0] for x in toys.episodes(1))
  inputs = types.AgentInput(
    jnp.asarray(observation),
    jnp.full([], types.NO_ACTION, jnp.int32),
    jnp.asarray(reward),
    jnp.ones([], bool),
  )
  q_values, _ = jax.jit(network.step)(params, inputs, network.initial_state())
  q_values = np.float64(q_values)
  preferred = reference.preferences(q_values, margin, _A - 2)
  num_samples = 20_000

  @jax.jit
  @functools.partial(jax.vmap, in_axes=(0, None))
  def act(key, epsilon):
    choice, state = core.select_action(params, inputs, core.init(key, epsilon))
    return choice, core.get_extras(state)

  keys = jax.random.split(jax.random.PRNGKey(0), num_samples)
  for epsilon in (0.0, 0.3, 1.0):
    choices, extras = act(keys, epsilon)
    expected = reference.choice_probabilities(preferred, epsilon)
    if temperature:
      policy = reference.expanded_policy(preferred, temperature, _A - 2)
      expected = epsilon / _A + (1 - epsilon) * policy
    frequencies = np.bincount(choices, minlength=_A) / num_samples
    np.testing.assert_allclose(frequencies, expected, atol=0.015)
    np.testing.assert_allclose(
      extras['probability'], expected[np.asarray(choices)], rtol=1e-5
    )
    np.testing.assert_array_equal(extras['choice'], choices)
    np.testing.assert_array_equal(extras['greedy_choice'], np.argmax(preferred))
    np.testing.assert_array_equal(extras['source'], types.OWN)
    # What is learned stays the same: only the selection changes.
    np.testing.assert_allclose(extras['q_values'][0], q_values, rtol=1e-6)
    assert extras['source'].dtype == jnp.uint8
    assert extras['choice'].dtype == jnp.int32
  assert margin < 3 or np.argmax(preferred) >= _A - 2


def test_stored_state_is_from_before_the_step():
  """Unrolling from the stored state reproduces the actor's greedy choices."""
  shown = toys.episodes(40, starts=(0, 23))
  _, extras, states, inputs = _run(0.5, shown)
  stored = extras['recurrent_state']
  for start in (0, 23):  # The state is zero at the start of an episode.
    assert not np.any(stored.hidden[start]) and not np.any(stored.cell[start])
  assert np.all(np.any(stored.cell[1:23] != 0, axis=-1))
  np.testing.assert_array_equal(
    stored.hidden[1:23], states.recurrent_state.hidden[:22]
  )
  for first, end in ((0, 23), (23, 40), (7, 15)):
    state = jax.tree.map(lambda x, t=first: x[t][None], stored)
    rows = jax.tree.map(lambda x, f=first, e=end: x[f:e, None], inputs)
    q_values, last = toys.unroll_of(_NETWORK)(_PARAMS, *rows[:3], state)
    np.testing.assert_array_equal(
      np.argmax(q_values[:, 0], axis=-1), extras['greedy_choice'][first:end]
    )
    np.testing.assert_allclose(
      last.cell[0], states.recurrent_state.cell[end - 1], rtol=1e-5
    )


def test_epsilon_and_shapes_are_constant_and_no_key_is_used_twice():
  _, _, states, _ = _run(0.25, toys.episodes(50, starts=(0, 7, 19)))
  np.testing.assert_array_equal(states.epsilon, np.full(50, 0.25, np.float32))
  assert len({key.tobytes() for key in states.key}) == 50
  chex.assert_trees_all_equal_shapes_and_dtypes(
    jax.tree.map(lambda x: x[0], states),
    _CORE.init(jax.random.PRNGKey(0), 0.25),
  )


@pytest.mark.parametrize('margin', [0.0, 0.1, 2.0])
@pytest.mark.parametrize('scale', [0.0, 1e-20, 1.0, -1.0, 1e20])
def test_preferences_are_those_of_the_reference(margin, scale):
  q_values = scale * np.array([0.3, 1.0, -2.0, 0.9, -1.1])
  preferred = r2d2_actor.prefer_extra_actions(jnp.array(q_values), margin, 3)
  expected = reference.preferences(q_values, margin, 3)
  np.testing.assert_allclose(preferred, expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize('scale', [0.0, 1e-30, 1.0, 1e30])
@pytest.mark.parametrize('temperature', [1e-3, 0.1, 100.0])
@pytest.mark.parametrize('num_extra', [1, 3])
def test_the_expanded_policy_matches_its_reference(
  scale, temperature, num_extra
):
  rng = np.random.default_rng(0)
  policy = jax.jit(r2d2_actor.expanded_policy, static_argnums=(1, 2))
  for q_values in np.float32(scale * rng.normal(size=(20, 4 + num_extra))):
    actual = np.asarray(policy(q_values, temperature, 4))
    expected = reference.expanded_policy(q_values.tolist(), temperature, 4)
    assert actual.shape == (4 + num_extra,) and actual.dtype == jnp.float32
    np.testing.assert_allclose(actual, expected, rtol=2e-3, atol=1e-6)
    assert np.count_nonzero(actual[:4]) <= 1
