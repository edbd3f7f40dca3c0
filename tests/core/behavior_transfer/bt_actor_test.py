"""Tests behavior transfer around an actor core against Alg. 1 of the paper."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme import config as config_lib
from bt_acme.core import r2d2_actor, types
from bt_acme.core.behavior_transfer import (
  behavior_core,
  bt_actor,
  flight_laws,
  flights,
)
from tests.core import toys
from tests.reference import flights as reference

_A = 4
_STARTS = (0, 41, 42, 90)  # The second episode has a single step.
_LENGTH = 160
_SHOWN = toys.episodes(_LENGTH, starts=_STARTS)
_IS_FIRST = _SHOWN[2]


def _witness_action(state):
  return (state // 7) % _A


def _witness():
  """Creates a behavior that depends on all observations and actions so far."""

  def step(params, inputs, state):
    state = jnp.where(inputs.is_first, 1, state)
    seen = jnp.sum(inputs.observation.astype(jnp.int32))
    state = (31 * state + 7 * inputs.prev_action + seen + params['salt']) % 9973
    return _witness_action(state), state

  return behavior_core.BehaviorCore(
    init=lambda key: jnp.zeros([], jnp.int32),
    step=step,
    features=lambda state: state,
  )


def _witness_proposals(actions, k, begins=_IS_FIRST):
  """Computes the proposals and states of the witness in plain Python.

  Args:
    actions: the executed actions.
    k: the number of the witness.
    begins: whether the witness restarts; by default, when an episode starts.
  """
  proposals, states, state = [], [], 0
  for t, observation in enumerate(_SHOWN[0]):
    first = begins[t]
    prev_action = types.NO_ACTION if first else int(actions[t - 1])
    state = 1 if first else state
    seen = int(observation.astype(np.int64).sum())
    state = (31 * state + 7 * prev_action + seen + 100 * k) % 9973
    states.append(state)
    proposals.append(int(_witness_action(state)))
  return proposals, states


_r2d2 = functools.cache(r2d2_actor.make_r2d2)


@functools.lru_cache
def _no_host_inputs(num_behaviors):
  return lambda x: bt_actor.BTInput(x, ((),) * num_behaviors)


@functools.lru_cache
def _wrapped(num_behaviors=1, evaluation=False, weights=(), **settings):
  """Returns (network, core, params) of an agent with these settings."""
  fields = {'min_flight_probability': 0.1, 'max_flight_probability': 0.4}
  config = config_lib.TransferConfig(**{**fields, **settings})
  num_extra = len(config.extra_behaviors(num_behaviors))
  network = toys.q_network(_A, _A + num_extra)
  core = bt_actor.wrap(
    _r2d2(network),
    [_witness()] * num_behaviors,
    config,
    num_actions=_A,
    behavior_weights=weights,
    evaluation=evaluation,
  )
  params = bt_actor.BTParams(
    agent=toys.random_params(network.init, scale=1.0),
    behaviors=tuple(
      {'salt': jnp.asarray(100 * k, jnp.int32)} for k in range(num_behaviors)
    ),
  )
  return network, core, params


@functools.lru_cache
def _run(epsilon=0.5, seed=0, num_behaviors=1, **settings):
  _, core, params = _wrapped(num_behaviors, **settings)
  state = core.init(jax.random.PRNGKey(seed), epsilon)
  no_inputs = _no_host_inputs(num_behaviors)
  return toys.rollout(core, params, state, _SHOWN, wrap_input=no_inputs)


# Settings, the behaviors with extra actions, and those that fly.
_VARIANTS = [
  ({'flight_exponent': 1.5}, [0], {0}),  # Episodes end during flights.
  ({'num_behaviors': 3, 'extra_action': False}, [], {0, 1, 2}),
  (
    {'num_behaviors': 2, 'flights': False, 'behavior_roles': 'choose,choose'},
    *([0, 1], set()),
  ),
  ({'num_behaviors': 3, 'behavior_roles': 'choose, fly,both'}, [0, 2], {1, 2}),
  ({'num_behaviors': 2, 'flight_epsilon': 1.0}, [0, 1], {0, 1}),
  (
    {'num_behaviors': 2, 'flight_epsilon': 1.0, 'extra_action': False},
    *([], {0, 1}),
  ),
]
_ALWAYS = {'min_flight_probability': 1.0, 'max_flight_probability': 1.0}


def test_random_actions_in_flights_label_their_steps():
  """With flight_epsilon=1, an episode's epsilon is 0 or in [0.1, 1]."""
  seen = []
  for seed in range(40):
    actions, extras, states, _ = _run(0.0, seed, flight_epsilon=1.0, **_ALWAYS)
    assert np.all(extras['source'] == types.FLIGHT)
    seen.append((actions, extras['choice'], states.flight.epsilon))
    # Each episode draws its epsilon.
    same = np.diff(states.flight.epsilon) == 0
    assert np.all(same | np.array(_IS_FIRST[1:]))
  actions, labels, epsilons = (
    np.concatenate(each) for each in zip(*seen, strict=True)
  )
  assert len(np.unique(epsilons)) > len(seen)
  random = labels < _A
  np.testing.assert_array_equal(actions[random], labels[random])
  assert not np.any(random[epsilons == 0])
  counts = np.bincount(actions[random], minlength=_A)
  assert counts.min() > 0.7 * counts.mean()
  random, epsilons = random[epsilons > 0], epsilons[epsilons > 0]
  assert len(random) > 300
  assert epsilons.min() >= 0.0999 and epsilons.max() <= 1
  deviation = np.sqrt(np.mean(epsilons * (1 - epsilons)) / len(random))
  assert abs(np.mean(random - epsilons)) < 4 * deviation


@pytest.mark.parametrize('variant, extra, flying', _VARIANTS)
def test_every_step_follows_the_papers_algorithm(variant, extra, flying):
  actions, extras, states, _ = _run(**variant)
  proposals = []
  for k in range(variant.get('num_behaviors', 1)):
    # Behaviors advance with the executed actions, including those of others.
    proposed, seen = _witness_proposals(actions, k)
    np.testing.assert_array_equal(states.behaviors[k], seen)
    np.testing.assert_array_equal(extras['features'][k], seen)
    proposals.append(proposed)
  proposals = np.array(proposals).T  # [T, K]
  length = extras['flight_length']
  expected = reference.act(
    choices=states.agent.choice,
    proposals=proposals,
    starts=length > 0,
    lengths=length,
    behaviors=states.flight_step.behavior,
    is_first=_IS_FIRST,
    num_actions=_A,
    extra_behaviors=extra,
  )
  assert actions.shape == (_LENGTH,)
  np.testing.assert_array_equal(extras['source'], expected[2])
  # Random actions in flights label their steps.
  random = extras['choice'] != expected[1]
  assert np.any(random) == ('flight_epsilon' in variant)
  assert np.all(extras['source'][random] == types.FLIGHT)
  np.testing.assert_array_equal(extras['choice'][random], actions[random])
  np.testing.assert_array_equal(actions[~random], expected[0][~random])
  assert actions.dtype == np.int32 and extras['choice'].dtype == np.int32
  assert extras['source'].dtype == np.uint8
  in_flight = extras['source'] == types.FLIGHT
  np.testing.assert_array_equal(
    extras['probability'], np.where(in_flight, 1, states.agent.probability)
  )
  assert set(np.unique(extras['source'])) == {
    types.OWN,
    *([types.EXTRA] if extra else []),
    *([types.FLIGHT] if flying else []),
  }
  assert set(extras['flight_behavior'][in_flight]) == flying
  # Each episode draws its own start probability.
  assert len(np.unique(states.flight.start_probability)) == len(_STARTS)
  delegated = extras['choice'][extras['source'] == types.EXTRA]
  assert set(delegated) == {_A + k for k in range(len(extra))}


def test_in_evaluations_only_behaviors_with_an_extra_action_act():
  roles = {'num_behaviors': 3, 'behavior_roles': 'choose,fly,both'}
  actions, extras, states, _ = _run(evaluation=True, **roles)
  for k in (0, 2):
    proposals, seen = _witness_proposals(actions, k)
    np.testing.assert_array_equal(extras['proposals'][:, k], proposals)
    np.testing.assert_array_equal(states.behaviors[k], seen)
  assert not states.behaviors[1].any() and not extras['proposals'][:, 1].any()
  assert extras['features'][1] == ()
  chosen = extras['choice'][extras['source'] == types.EXTRA]
  assert set(chosen) == {_A, _A + 1}


def test_behaviors_that_only_fly_may_skip_the_episodes_of_others():
  settings = {'behavior_roles': 'both,fly,fly', 'behavior_draws': 'episode'}
  actions, extras, states, _ = _run(seed=2, num_behaviors=3, **settings)
  flies = extras['flight_behavior']
  assert set(np.diff(flies).nonzero()[0] + 1) <= set(_STARTS)
  assert set(flies) == {0, 1, 2}
  in_flight = extras['source'] == types.FLIGHT
  for k in range(3):
    proposals, seen = _witness_proposals(actions, k)
    acts = (flies == k) | (k == 0)
    assert (acts & in_flight).any()
    np.testing.assert_array_equal(extras['skipped'][:, k], ~acts)
    np.testing.assert_array_equal(
      extras['proposals'][:, k], np.where(acts, proposals, 0)
    )
    last = np.maximum.accumulate(np.where(acts, np.arange(_LENGTH), -1))
    expected = np.where(last < 0, 0, np.array(seen)[last])
    np.testing.assert_array_equal(states.behaviors[k], expected)


def test_the_input_may_have_the_weights_of_a_flight():
  _, core, params = _wrapped(num_behaviors=3, **_ALWAYS)

  @jax.jit
  def run(flight_weights):
    def wrap_input(inputs):
      return bt_actor.BTInput(inputs, ((),) * 3, flight_weights)

    state = core.init(jax.random.PRNGKey(0), 0.5)
    carry = (state, jnp.int32(types.NO_ACTION))
    return toys.scan(core, wrap_input, params, carry, _SHOWN)[1]

  only_second = run(np.float32([0, 1, 0]))
  assert set(np.asarray(only_second['flight_behavior'])) == {1}
  actual = run(np.float32([1, 0, 1]))
  # These weights are outside the range of float32.
  expected = _run(num_behaviors=3, weights=(1e39, 0.0, 1e39), **_ALWAYS)[1]
  assert set(expected['choice']) == {_A, _A + 2}
  assert set(expected['source']) == {types.FLIGHT}
  for name in ('choice', 'source', 'flight_behavior', 'flight_length'):
    np.testing.assert_array_equal(actual[name], expected[name])


def test_behaviors_may_restart_with_their_flights():
  actions, extras, states, _ = _run(
    num_behaviors=3, flight_behavior_state='restart'
  )
  assert not extras['skipped'].any()
  flies = states.flight_step.behavior
  for k in range(3):
    starts = (extras['flight_length'] > 0) & (flies == k)
    assert (starts & ~_IS_FIRST).sum() > 3
    proposals, expected = _witness_proposals(actions, k, _IS_FIRST | starts)
    np.testing.assert_array_equal(states.behaviors[k], expected)
    assert expected != _witness_proposals(actions, k)[1]
    in_its_flight = (extras['source'] == types.FLIGHT) & (flies == k)
    np.testing.assert_array_equal(
      actions[in_its_flight], np.array(proposals)[in_its_flight]
    )


@pytest.mark.parametrize('law', flight_laws.BY_NAME)
def test_64_bit_types_change_no_dtype(law):
  config = config_lib.TransferConfig(flight_law=law, flight_epsilon=0.1)
  network, behavior = toys.q_network(_A, _A + 1), behavior_core.uniform(_A)
  core = bt_actor.wrap(_r2d2(network), [behavior], config, num_actions=_A)
  params = bt_actor.BTParams(toys.random_params(network.init), ((),))

  def run(key):
    carry = (core.init(key, 0.5), jnp.int32(types.NO_ACTION))
    return toys.scan(core, _no_host_inputs(1), params, carry, _SHOWN)

  expected = jax.eval_shape(run, jax.random.key(0))
  with toys.enable_x64():
    assert jax.eval_shape(run, jax.random.key(0)) == expected


def test_without_flights_and_extra_action_the_agent_is_unchanged():
  """The epsilon of flights has no effect in evaluations."""
  settings = {'extra_action': False, 'evaluation': True, 'flight_epsilon': 1.0}
  network, core, params = _wrapped(**settings)
  actions, extras, _, _ = _run(**settings)
  agent_state = core.init(jax.random.PRNGKey(0), 0.5).agent
  expected_actions, expected_extras, _, _ = toys.rollout(
    _r2d2(network), params.agent, agent_state, _SHOWN
  )
  np.testing.assert_array_equal(actions, expected_actions)
  assert len(np.unique(actions)) == _A
  assert set(expected_extras) < set(extras)
  for name, expected in expected_extras.items():
    chex.assert_trees_all_equal(extras[name], expected)
  np.testing.assert_array_equal(extras['flight_length'], np.zeros(_LENGTH))


@pytest.mark.parametrize('settings', [{}, {'flight_recurrent_state': 'hold'}])
def test_stored_state_equals_the_learners_also_in_flights(settings):
  """The reference is an unroll from the start of the episode."""
  network, _, params = _wrapped(**settings)
  _, extras, _, inputs = _run(**settings)
  in_flight = extras['source'] == types.FLIGHT
  assert np.mean(in_flight) > 0.2
  assert np.any(in_flight[list(_STARTS)])
  stored = extras['recurrent_state']
  unroll = toys.unroll_of(network)
  for start, end in zip(_STARTS, [*_STARTS[1:], _LENGTH], strict=True):
    state = jax.tree.map(lambda x: x[None], network.initial_state())
    for t in range(start, min(end, start + 25)):
      np.testing.assert_allclose(stored.hidden[t], state.hidden[0], atol=1e-5)
      np.testing.assert_allclose(stored.cell[t], state.cell[0], atol=1e-5)
      row = jax.tree.map(lambda x, t=t: x[t, None, None], inputs)
      held = bool(settings) & in_flight[t, None, None]
      q_values, state = unroll(params.agent, *row[:3], state, held)
      assert extras['greedy_choice'][t] == np.argmax(q_values)


def test_an_agent_that_cannot_hold_its_state_is_an_error():
  blind = _r2d2(toys.q_network(_A, _A))._replace(hold=None)
  config = config_lib.TransferConfig(flight_recurrent_state='hold')
  with pytest.raises(ValueError, match="flight_recurrent_state='hold' needs"):
    bt_actor.wrap(blind, [_witness()], config, num_actions=_A)


def test_only_the_ratios_of_weights_matter():
  # The largest and smallest weights are outside the range of float32.
  config = config_lib.TransferConfig()
  for scale in (1e39, 1e-50):
    relative = flights.relative_weights(config, (scale, 0.0, scale), 3)
    assert relative == (1.0, 0.0, 1.0)


def test_flights_by_the_agents_epsilon_replace_random_actions():
  settings = {'flight_probability': 'epsilon', 'flight_exponent': 4.0}
  share = []
  for epsilon in (0.1, 0.4):
    _, extras, _, _ = _run(epsilon=epsilon, **settings)
    chosen = extras['source'] != types.FLIGHT
    np.testing.assert_array_equal(
      extras['choice'][chosen], extras['greedy_choice'][chosen]
    )
    np.testing.assert_array_equal(extras['probability'], 1)
    idle = chosen | (extras['flight_length'] > 0)
    share.append(np.mean(extras['flight_length'][idle] > 0))
    np.testing.assert_allclose(extras['flight_probability'], epsilon)
  np.testing.assert_allclose(share, [0.1, 0.4], atol=0.08)
  _, extras, _, _ = _run(epsilon=0.4, evaluation=True, **settings)
  assert set(np.unique(extras['source'])) == {types.OWN, types.EXTRA}
  assert 0.4 / (_A + 1) == pytest.approx(extras['probability'].min())
  np.testing.assert_array_equal(extras['flight_probability'], 0)


@pytest.mark.parametrize(
  'num_behaviors, settings, message',
  [
    (2, {'weights': (1.0,)}, 'at least 0 for each of the 2 behaviors'),
    (2, {'weights': (1.0, -1.0)}, r'behavior_weights=\(1.0, -1.0\)'),
    (2, {'weights': (0.0, 0.0)}, 'not all 0'),
    (2, {'weights': (float('nan'), 1.0)}, 'behavior_weights='),
    (0, {}, 'at least one behavior'),
    (2, {'behavior_roles': 'choose,choose'}, 'leave no behavior for flights'),
    (3, {'behavior_roles': 'fly,both'}, 'each of the 3 behaviors'),
  ],
)
def test_bad_behaviors_and_weights_are_errors(num_behaviors, settings, message):
  with pytest.raises(ValueError, match=message):
    _wrapped(num_behaviors, **settings)
