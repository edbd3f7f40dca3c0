"""Tests the laws of flights: formulas, extremes, and whole episodes."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme import config as config_lib
from bt_acme.core import types
from bt_acme.core.behavior_transfer import behavior_core, bt_actor
from bt_acme.core.behavior_transfer.flight_laws import (
  jump_start,
  triggered,
  until_agent,
)
from tests.reference import flight_laws as reference

_LEARNER = config_lib.LearnerConfig(value_rescaling_epsilon=0.0)
_NUM_ACTIONS = 3
_ALWAYS = {'min_flight_probability': 1.0, 'max_flight_probability': 1.0}


@functools.lru_cache
def _core(**settings):
  """Returns the start and the steps of an actor whose values are its inputs."""
  agent = types.ActorCore(
    init=lambda key: jnp.zeros(4),
    select_action=lambda params, inputs, state: (
      jnp.argmax(inputs.observation).astype(jnp.int32),
      inputs.observation,
    ),
    get_extras=lambda state: {'q_values': state},
  )
  behavior = behavior_core.BehaviorCore(
    init=lambda key: (),
    step=lambda params, inputs, state: (jnp.int32(2), state),
  )
  core = bt_actor.wrap(
    agent,
    [behavior],
    config_lib.TransferConfig(**settings),
    num_actions=_NUM_ACTIONS,
    learner=_LEARNER,
  )

  def step(state, row):
    q, reward, first = row
    inputs = types.AgentInput(q, jnp.int32(0), reward, first)
    _, state = core.select_action(
      bt_actor.BTParams((), ((),)), bt_actor.BTInput(inputs, ((),)), state
    )
    return state, core.get_extras(state)

  return core.init, jax.jit(lambda *x: jax.lax.scan(step, *x))


def _play(q_values, is_first, rewards=None, **settings):
  """Returns sources, choices and lengths of flights of some steps, [T] each.

  The rewards [T] are 0 by default.
  """
  rewards = np.zeros(len(is_first)) if rewards is None else rewards
  init, play = _core(**settings)
  rows = (jnp.float32(q_values), jnp.float32(rewards), jnp.asarray(is_first))
  _, extras = play(init(jax.random.key(0)), rows)
  return [
    np.asarray(extras[name]) for name in ('source', 'choice', 'flight_length')
  ]


def _episodes(lengths):
  """Returns `is_first` of episodes; each also shows its final observation."""
  return np.concatenate([np.arange(length + 1) == 0 for length in lengths])


# Extremes: no reward at all, only costs, huge and tiny returns.
@pytest.mark.parametrize('scale', [0.0, 1.0, -1.0, 1e30, 1e-30])
@pytest.mark.parametrize('window', [1, 5])
def test_jump_start_matches_its_reference(scale, window):
  rng = np.random.default_rng(0)
  lengths = rng.integers(1, 50, size=60)
  # Multiples of 1/4 leave no comparison to rounding errors.
  returns = np.float32(scale) * rng.integers(0, 5, size=60)
  returns[:45] = 4 * scale  # The share reaches its minimum, and grows again.
  settings = {'rate': 0.2, 'tolerance': 0.3, 'window': window}
  expected = reference.jump_start_shares(
    [float(x) for x in returns], [int(x) for x in lengths], **settings
  )
  config = config_lib.TransferConfig(
    flight_law='jump_start',
    **{f'jump_start_{name}': value for name, value in settings.items()},
  )
  end = jax.jit(jump_start.end_episode, static_argnums=1)
  state, shares = jump_start.new_state(), []
  for total, length in zip(returns, lengths, strict=True):
    state = state._replace(total=jnp.float32(total), length=jnp.float32(length))
    state = end(state, config)
    shares.append((state.share, state.mean_length))
    assert all(x.dtype == jnp.float32 and np.isfinite(x) for x in state)
  assert state.length == state.total == 0
  assert len(shares) == len(expected) == 60
  if scale == 0:
    np.testing.assert_array_equal([share for share, _ in shares], 1)
  np.testing.assert_allclose(shares, expected, rtol=1e-4)


def test_the_jump_start_shrinks_while_episodes_succeed():
  lengths = [20] * 40
  is_first = _episodes(lengths)
  rewards = np.roll(is_first, -1) * 1.0  # At the end of each episode.
  source, choice, _ = _play(
    np.zeros([len(is_first), 4]), is_first, rewards, flight_law='jump_start'
  )
  in_flight = (source == types.FLIGHT).reshape(40, 21)
  np.testing.assert_array_equal(choice[in_flight.ravel()], _NUM_ACTIONS)
  # Each flight consists of the first steps of its episode.
  steps = in_flight.sum(axis=1)
  np.testing.assert_array_equal(in_flight, np.arange(21) < steps[:, np.newaxis])
  expected = [
    share * length
    for share, length in reference.jump_start_shares(
      [1.0] * 40, lengths, rate=0.1, tolerance=0.25, window=5
    )
  ]
  assert steps[0] == 21  # The length of an episode is still unknown.
  assert np.abs(steps[1:] - expected[:-1]).max() < 1
  assert steps[-1] <= 1


@pytest.mark.parametrize('margin', [0.0, 0.5])
@pytest.mark.parametrize('scale', [0.0, 1e-30, 1.0, 1e30])
def test_agent_leads_as_in_the_reference(margin, scale):
  rng = np.random.default_rng(1)
  agent_leads = jax.jit(until_agent.agent_leads, static_argnames='margin')
  for q_values in np.float32(scale * rng.integers(-4, 5, size=(50, 4))):
    for choice in range(4):
      actual = agent_leads(q_values, jnp.int32(choice), margin=margin)
      expected = reference.agent_leads(q_values.tolist(), choice, margin=margin)
      assert actual.dtype == bool and bool(actual) == expected


@pytest.mark.parametrize('extra_action', [True, False])
def test_a_flight_ends_where_the_agents_own_choice_is_better(extra_action):
  # The behavior takes action 2, whose label is 3 if it has an extra action.
  own = 3 if extra_action else 2
  q_values = np.zeros([30, 4])
  q_values[:, own] = 1.0
  q_values[10, 0] = 1.4  # Within the margin.
  q_values[20, 0] = 3.0
  settings = {'flight_law': 'until_agent', **_ALWAYS}
  source, choice, length = _play(
    q_values,
    np.arange(30) == 0,
    until_agent_margin=0.5,
    extra_action=extra_action,
    **settings,
  )
  np.testing.assert_array_equal(source == types.FLIGHT, np.arange(30) != 20)
  np.testing.assert_array_equal(choice == own, source == types.FLIGHT)
  np.testing.assert_array_equal(np.flatnonzero(length), [0, 21])
  # A flight has at least one step. After it ends, its step is the agent's.
  q_values = np.tile([1.0, 0, 0, 0], [10, 1])
  source, _, _ = _play(q_values, np.arange(10) == 0, **settings)
  np.testing.assert_array_equal(source == types.FLIGHT, np.arange(10) % 2 == 0)


@pytest.mark.parametrize('num', [1, 2, 7])
@pytest.mark.parametrize('discount', [0.0, 0.9, 1.0])
@pytest.mark.parametrize('scale', [0.0, 1e-20, 1.0, 1e20])
def test_promise_discrepancy_matches_its_reference(num, discount, scale):
  rng = np.random.default_rng(num)
  values, rewards = np.float32(scale * rng.normal(size=(2, num)))
  value = np.float32(scale * rng.normal())
  compute = jax.jit(triggered.promise_discrepancy, static_argnames='discount')
  actual = compute(values, rewards, value, discount=discount)
  given = (x.tolist() for x in (values, rewards, value))
  expected = reference.promise_discrepancy(*given, discount=discount)
  assert actual.shape == () and actual.dtype == jnp.float32
  np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5 * scale)


@jax.jit
def _trigger_probabilities(signals, rate):
  def step(state, signal):
    probability, state = triggered.trigger_probability(state, signal, rate)
    return state, probability

  return jax.lax.scan(step, triggered.Homeostasis(*jnp.zeros(4)), signals)[1]


@pytest.mark.parametrize('rate', [1e-4, 0.1, 1.0])
@pytest.mark.parametrize('scale', [0.0, 1e-6, 1.0, 1e6])
@pytest.mark.parametrize('shape', [0.5, 100.0])
def test_trigger_probability_matches_its_reference(rate, scale, shape):
  rng = np.random.default_rng(2)
  signals = np.float32(scale * rng.gamma(shape, size=2_000))
  actual = _trigger_probabilities(signals, np.float32(rate))
  expected = reference.trigger_probabilities([float(x) for x in signals], rate)
  assert actual.shape == (2_000,) and actual.dtype == jnp.float32
  np.testing.assert_allclose(actual, expected, rtol=0.01, atol=1e-7)
  mean = np.mean(actual[500:])
  assert mean < 1.1 * rate
  if shape > 1 and rate < 1:  # Without heavy tails, few probabilities reach 1.
    np.testing.assert_allclose(mean, rate, rtol=0.2)


def test_a_single_outlier_does_not_overflow():
  signals = [0.0] * 3 + [1e15] + [0.0] * 3
  actual = _trigger_probabilities(np.float32(signals), np.float32(1e-3))
  expected = reference.trigger_probabilities(signals, 1e-3)
  np.testing.assert_allclose(actual, expected, rtol=0.01, atol=1e-7)


def _triggered(rate):
  """Returns settings of flights of one step, triggered after three steps."""
  return {
    'flight_law': 'triggered',
    'promise_steps': 3,
    'flight_exponent': 20.0,
    'min_flight_probability': rate,
    'max_flight_probability': rate,
  }


def test_flights_start_where_a_promise_was_broken():
  rng = np.random.default_rng(3)
  q_values = np.zeros([4_000, 4])
  # The values are noise, and wrong by far at every hundredth step.
  q_values[:, 0] = 0.01 * rng.normal(size=4_000)
  q_values[50::100, 0] = 5.0
  is_first = np.arange(4_000) % 1_000 == 0
  source, _, length = _play(q_values, is_first, **_triggered(0.02))
  starts = length > 0
  np.testing.assert_array_equal(starts, source == types.FLIGHT)
  assert not np.any(starts[(np.arange(4_000) % 1_000) < 3])
  # V(s_t) is wrong at steps 50, 150, ...; V(s_{t-3}) three steps later.
  assert 0.01 < starts.mean() < 0.03
  broken = np.isin(np.arange(4_000) % 100, (50, 53))
  assert starts[broken].mean() > 20 * starts[~broken].mean()


# The values of terminal states are never trained, so that they are outliers.
@pytest.mark.parametrize('outlier', [0.0, 10.0, 1e4])
def test_final_observations_do_not_change_the_rate(outlier):
  num, length, rate = 400, 60, 0.02
  rng = np.random.default_rng(4)
  values = 0.01 * rng.normal(size=[num, length + 1])
  values[:, -1] = outlier
  q_values = np.zeros([values.size, 4])
  q_values[:, 0] = values.ravel()
  q_values[:, 1:] = -1e6
  _, _, drawn = _play(q_values, _episodes([length] * num), **_triggered(rate))
  starts = (drawn > 0).reshape(num, length + 1)[:, 3:length]
  signals = [
    reference.promise_discrepancy(
      episode[t - 3 : t], [0.0] * 3, episode[t], discount=_LEARNER.discount
    )
    for episode in values
    for t in range(3, length)
  ]
  expected = reference.trigger_probabilities(signals, rate)
  assert len(expected) == starts.size
  np.testing.assert_allclose(starts.mean(), np.mean(expected), rtol=0.15)
  np.testing.assert_allclose(starts.mean(), rate, rtol=0.2)
