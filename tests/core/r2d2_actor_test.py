"""Tests R2D2 acting: exploration, probabilities, states and episodes."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np

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


def test_frequencies_and_probabilities_match_reference():
  """The greedy choice is selected either greedily or at random."""
  observation, reward, _ = (x[0] for x in toys.episodes(1))
  inputs = types.AgentInput(
    jnp.asarray(observation),
    jnp.full([], types.NO_ACTION, jnp.int32),
    jnp.asarray(reward),
    jnp.ones([], bool),
  )
  q_values, _ = jax.jit(_NETWORK.step)(
    _PARAMS, inputs, _NETWORK.initial_state()
  )
  num_samples = 20_000

  @jax.jit
  @functools.partial(jax.vmap, in_axes=(0, None))
  def act(key, epsilon):
    choice, state = _CORE.select_action(
      _PARAMS, inputs, _CORE.init(key, epsilon)
    )
    return choice, _CORE.get_extras(state)

  keys = jax.random.split(jax.random.PRNGKey(0), num_samples)
  for epsilon in (0.0, 0.3, 1.0):
    choices, extras = act(keys, epsilon)
    expected = reference.choice_probabilities(np.asarray(q_values), epsilon)
    frequencies = np.bincount(choices, minlength=_A) / num_samples
    np.testing.assert_allclose(frequencies, expected, atol=0.015)
    np.testing.assert_allclose(
      extras['probability'], expected[np.asarray(choices)], rtol=1e-6
    )
    np.testing.assert_array_equal(extras['choice'], choices)
    np.testing.assert_array_equal(extras['greedy_choice'], np.argmax(q_values))
    np.testing.assert_array_equal(extras['source'], types.OWN)
    assert extras['source'].dtype == jnp.uint8
    assert extras['choice'].dtype == jnp.int32


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
    q_values, last = jax.jit(_NETWORK.unroll)(_PARAMS, *rows[:3], state)
    np.testing.assert_array_equal(
      np.argmax(q_values[:, 0], axis=-1), extras['greedy_choice'][first:end]
    )
    np.testing.assert_allclose(
      last.cell[0], states.recurrent_state.cell[end - 1], rtol=1e-5
    )


def test_epsilon_is_constant_and_keys_are_never_used_twice():
  _, _, states, _ = _run(0.25, toys.episodes(50, starts=(0, 7, 19)))
  np.testing.assert_array_equal(states.epsilon, np.full(50, 0.25, np.float32))
  assert len({key.tobytes() for key in states.key}) == 50


def test_no_tracer_leaks():
  state = _CORE.init(jax.random.PRNGKey(0), 0.5)
  observation, reward, is_first = (x[0] for x in toys.episodes(1))
  inputs = types.AgentInput(
    observation, jnp.zeros([], jnp.int32), reward, is_first
  )
  with jax.checking_leaks():
    action, after = jax.jit(_CORE.select_action)(_PARAMS, inputs, state)
  assert action.dtype == jnp.int32
  chex.assert_trees_all_equal_shapes_and_dtypes(after, state)
