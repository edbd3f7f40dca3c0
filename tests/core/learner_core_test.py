"""The loss and the learner step: test vectors, twins, and whole updates."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from bt_acme import config as config_lib
from bt_acme.core import learner_core, networks, types
from tests.core import toys
from tests.reference import losses as reference
from tests.reference import returns

_NUM_ACTIONS = 3
_Q_ONLINE = [[0.5, 0.1, 0.2], [0.3, 0.9, 0.4], [1.0, 0.2, 0.7], [0.6, 0.8, 0.1]]
_Q_TARGET = [[0.4, 0.2, 0.1], [0.2, 0.7, 0.5], [0.6, 0.3, 0.9], [0.5, 0.6, 0.2]]


def _table(num_actions, num_choices):
  """A network whose parameters are its Q-values, [T + 1, B, A']."""

  def unroll(params, observation, prev_action, prev_reward, state):
    del observation, prev_action, prev_reward
    return params, state

  return networks.QNetwork(
    init=lambda key: jnp.zeros([1, 1, num_choices]),
    initial_state=lambda: types.LSTMState(jnp.zeros([0]), jnp.zeros([0])),
    step=lambda params, inputs, state: (params[0, 0], state),
    unroll=unroll,
    num_actions=num_actions,
    num_choices=num_choices,
    observation_shape=toys.SHAPE,
  )


def _replay(length, burn_in=0):
  return config_lib.ReplayConfig(
    trace_length=length - burn_in,
    burn_in_length=burn_in,
    sequence_period=length,
  )


def _loss_and_gradient(
  batch, q_online, q_target, *, num_actions=_NUM_ACTIONS, **settings
):
  """(loss, priorities, metrics, gradient with respect to q_online)."""
  network = _table(num_actions, np.shape(q_online)[-1])
  loss_fn = learner_core.make_loss(
    network, config_lib.LearnerConfig(**settings), _replay(len(batch.reward))
  )
  (loss, (priorities, metrics)), gradient = jax.jit(
    jax.value_and_grad(loss_fn, has_aux=True)
  )(
    jnp.asarray(q_online, jnp.float32),
    jnp.asarray(q_target, jnp.float32),
    jax.tree.map(jnp.asarray, batch),
    jnp.zeros([1]),
    jnp.ones(batch.reward.shape[1]),
  )
  return loss, priorities, metrics, np.asarray(gradient)


def _random_q_values(length, batch_size, num_choices, seed=0):
  rng = np.random.default_rng(seed)
  shape = (length + 1, batch_size, num_choices)
  return np.float32(rng.normal(size=shape)), np.float32(rng.normal(size=shape))


@pytest.mark.parametrize(
  'last_discount, loss, priority',
  [(1.0, 2.883898, 1.515049), (0.0, 1.874322, 1.224138)],
)
def test_loss_and_priority_vector(last_discount, loss, priority):
  batch = toys.batch(3, 1, num_actions=2)._replace(
    action=np.array([[0], [0], [1]], np.int32),
    choice=np.array([[0], [2], [1]], np.int32),
    source=np.array([[types.OWN], [types.EXTRA], [types.OWN]], np.uint8),
    reward=np.array([[1], [0], [5]], np.float32),
    discount=np.array([[1], [1], [last_discount]], np.float32),
  )
  q_online, q_target = (np.asarray(q)[:, None] for q in (_Q_ONLINE, _Q_TARGET))
  actual, priorities, _, _ = _loss_and_gradient(
    batch, q_online, q_target, num_actions=2
  )
  np.testing.assert_allclose(actual, loss, atol=3e-6)
  assert priorities.shape == (1,)
  np.testing.assert_allclose(priorities, [priority], atol=2e-6)


@pytest.mark.parametrize('num_extra', [0, 1, 2])
@pytest.mark.parametrize(
  'duplicate_flights, double_q', [(True, True), (False, True), (True, False)]
)
def test_loss_gradient_and_priorities_match_reference(
  num_extra, duplicate_flights, double_q
):
  batch = toys.batch(
    6, 5, num_actions=_NUM_ACTIONS, num_extra=num_extra, real=[6, 1, 2, 5, 0]
  )
  q_online, q_target = _random_q_values(6, 5, _NUM_ACTIONS + num_extra)
  loss, priorities, metrics, gradient = _loss_and_gradient(
    batch,
    q_online,
    q_target,
    duplicate_flights=duplicate_flights,
    double_q=double_q,
  )
  targets = returns.q_lambda_targets(
    q_online if double_q else q_target,
    q_target,
    batch.reward,
    0.99 * batch.discount,
    batch.valid,
    trace_decay=0.7,
    epsilon=1e-3,
  )
  expected = reference.loss_gradient_priorities(
    q_online,
    targets,
    batch.choice,
    batch.action,
    batch.source,
    batch.valid,
    num_actions=_NUM_ACTIONS,
    duplicate_flights=duplicate_flights,
    max_weight=0.9,
  )
  assert gradient.shape == (7, 5, _NUM_ACTIONS + num_extra)
  np.testing.assert_allclose(loss, expected[0], rtol=1e-5)
  np.testing.assert_allclose(gradient, expected[1], rtol=1e-4, atol=1e-6)
  np.testing.assert_allclose(priorities, expected[2], rtol=1e-5)
  real = batch.valid > 0
  np.testing.assert_allclose(
    metrics['mean_target'], targets[real].mean(), rtol=1e-4
  )
  np.testing.assert_allclose(
    metrics['mean_reward'], batch.reward[real].mean(), rtol=1e-5
  )


def test_retrace_learns_from_the_choice_and_its_probability():
  batch = toys.batch(6, 4, num_actions=_NUM_ACTIONS, real=[6, 1, 2, 5])
  q_online, q_target = _random_q_values(6, 4, _NUM_ACTIONS)
  loss, priorities, _, gradient = _loss_and_gradient(
    batch, q_online, q_target, loss='retrace', trace_decay=0.95
  )
  targets = returns.retrace_targets(
    q_online,
    q_target,
    batch.action,
    batch.probability,
    batch.reward,
    0.99 * batch.discount,
    batch.valid,
    trace_decay=0.95,
    target_policy_epsilon=0.01,
    epsilon=1e-3,
  )
  expected = reference.loss_gradient_priorities(
    q_online,
    targets,
    batch.choice,
    batch.action,
    batch.source,
    batch.valid,
    num_actions=_NUM_ACTIONS,
    duplicate_flights=True,
    max_weight=0.9,
  )
  np.testing.assert_allclose(loss, expected[0], rtol=1e-5)
  np.testing.assert_allclose(gradient, expected[1], rtol=1e-4, atol=1e-6)
  np.testing.assert_allclose(priorities, expected[2], rtol=1e-5)


def test_duplicates_add_their_own_terms_and_leave_targets_alone():
  batch = toys.batch(6, 4, num_actions=_NUM_ACTIONS, num_extra=1)
  q_online, q_target = _random_q_values(6, 4, _NUM_ACTIONS + 1)
  relabelled = batch._replace(
    choice=batch.action, source=np.full_like(batch.source, types.OWN)
  )
  with_own = _loss_and_gradient(batch, q_online, q_target)
  primitive = _loss_and_gradient(relabelled, q_online, q_target)
  np.testing.assert_array_equal(
    with_own[2]['mean_target'], primitive[2]['mean_target']
  )
  # What the choice of the behavior adds to the primitives' terms.
  delegated = batch.source != types.OWN
  assert 0 < delegated.sum() < delegated.size
  added = with_own[3] - primitive[3]
  assert np.all(added[:-1][delegated][:, _NUM_ACTIONS] != 0)
  assert np.all(added[:-1][~delegated] == 0)
  np.testing.assert_allclose(added[..., :_NUM_ACTIONS], 0, atol=1e-7)
  np.testing.assert_allclose(
    with_own[0] - primitive[0],
    0.5 * np.sum((added * 4) ** 2) / 4,
    rtol=1e-4,
  )


@pytest.mark.parametrize('content', [1e20, np.inf, np.nan])
@pytest.mark.parametrize('loss', ['q_lambda', 'retrace'])
def test_padding_changes_nothing(content, loss):
  def result(padded):
    real = [6, 1, 3, 0]
    batch = toys.batch(6, 4, num_actions=_NUM_ACTIONS, num_extra=1, real=real)
    q_values = _random_q_values(6, 4, _NUM_ACTIONS + 1)
    if padded:
      no = batch.valid == 0
      batch = batch._replace(
        reward=np.where(no, np.float32(content), batch.reward),
        discount=np.where(no, np.float32(content), batch.discount),
        probability=np.where(no, np.float32(content), batch.probability),
        action=np.where(no, 99, batch.action).astype(np.int32),
        choice=np.where(no, 99, batch.choice).astype(np.int32),
        source=np.where(no, 99, batch.source).astype(np.uint8),
      )
      for q in q_values:
        q[1:][no] = content
    return _loss_and_gradient(batch, *q_values, loss=loss)

  jax.tree.map(np.testing.assert_array_equal, result(True), result(False))


@pytest.fixture
def optax_promotes():
  """Adam raises a float to its integer count: optax is not strict itself."""
  with jax.numpy_dtype_promotion('standard'):
    yield


@functools.lru_cache
def _learner(**settings):
  network = toys.q_network(_NUM_ACTIONS, _NUM_ACTIONS + 1)
  fields = {'target_update_period': 3, 'learning_rate': 0.01, **settings}
  config = config_lib.BTConfig(
    replay=_replay(6), learner=config_lib.LearnerConfig(**fields)
  )
  core = learner_core.make_learner_core(network, config, num_stacked=1)
  return core, jax.jit(core.step), core.init


def _toy_batch(**settings):
  batch = toys.batch(6, 4, num_actions=_NUM_ACTIONS, num_extra=1, **settings)
  return jax.tree.map(jnp.asarray, batch)


def test_padded_sequence_is_worth_the_short_one_through_the_network():
  """Loss, priority and gradient, whatever lies behind the end."""
  network = toys.q_network(_NUM_ACTIONS, _NUM_ACTIONS + 1)
  params, target_params = (
    network.init(jax.random.PRNGKey(seed)) for seed in (0, 1)
  )

  def result(batch):
    loss_fn = learner_core.make_loss(
      network, config_lib.LearnerConfig(), _replay(len(batch.reward))
    )
    (loss, (priorities, _)), gradient = jax.jit(
      jax.value_and_grad(loss_fn, has_aux=True)
    )(params, target_params, batch, batch.frames, jnp.ones([1]))
    return loss, priorities, gradient

  batch = toys.batch(6, 1, num_actions=_NUM_ACTIONS, num_extra=1, real=[2])
  state = batch.recurrent_state
  padded = batch._replace(recurrent_state=None)
  short = jax.tree.map(lambda x: x[: len(x) - 4], padded)._replace(
    recurrent_state=state
  )
  padded = padded._replace(recurrent_state=state)
  padded.frames[3:] = 255
  padded.prev_reward[3:] = 1e6
  padded.reward[2:] = -1e6
  actual, expected = result(padded), result(short)
  assert expected[1].shape == (1,)
  for x, y in zip(
    jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True
  ):
    assert np.any(np.asarray(y) != 0)
    np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-7)


def test_burn_in_warms_the_state_up_without_gradient():
  network = toys.q_network(_NUM_ACTIONS, _NUM_ACTIONS)
  params = network.init(jax.random.PRNGKey(0))
  batch = toys.batch(6, 2, num_actions=_NUM_ACTIONS)

  def result(batch, burn_in):
    loss_fn = learner_core.make_loss(
      network, config_lib.LearnerConfig(), _replay(len(batch.reward), burn_in)
    )
    return jax.jit(jax.value_and_grad(loss_fn, has_aux=True))(
      params, params, batch, batch.frames, jnp.ones([2])
    )

  # Each network warms its own state up: one network here stands for both.
  (loss, (priorities, _)), gradient = result(batch, 2)
  _, state = jax.jit(network.unroll)(
    params,
    batch.frames[:2],
    batch.prev_action[:2],
    batch.prev_reward[:2],
    batch.recurrent_state,
  )
  tail = jax.tree.map(
    lambda x: x[2:], batch._replace(recurrent_state=None)
  )._replace(recurrent_state=state)
  (expected, (expected_priorities, _)), expected_gradient = result(tail, 0)
  np.testing.assert_allclose(loss, expected, rtol=1e-5)
  np.testing.assert_allclose(priorities, expected_priorities, rtol=1e-5)
  for name in gradient:
    np.testing.assert_allclose(
      gradient[name], expected_gradient[name], rtol=1e-4, atol=1e-6
    )


def test_each_network_burns_in_with_its_own_parameters():
  network = toys.q_network(_NUM_ACTIONS, _NUM_ACTIONS)
  seen = []

  def unroll(params, observation, prev_action, prev_reward, state):
    q_values, after = network.unroll(
      params, observation, prev_action, prev_reward, state
    )
    seen.append((len(observation), state, after))
    return q_values, after

  batch = toys.batch(6, 2, num_actions=_NUM_ACTIONS)
  loss_fn = learner_core.make_loss(
    network._replace(unroll=unroll), config_lib.LearnerConfig(), _replay(6, 2)
  )
  online, target = (network.init(jax.random.PRNGKey(s)) for s in (0, 1))
  _, (priorities, _) = loss_fn(
    online, target, batch, batch.frames, jnp.ones([2])
  )
  assert [length for length, _, _ in seen] == [2, 5, 2, 5]
  assert priorities.shape == (2,)
  for burn_in, trace in ((seen[0], seen[1]), (seen[2], seen[3])):
    np.testing.assert_array_equal(burn_in[1].cell, batch.recurrent_state.cell)
    np.testing.assert_array_equal(burn_in[2].cell, trace[1].cell)
  assert np.any(np.asarray(seen[1][1].cell) != np.asarray(seen[3][1].cell))


def test_the_unroll_is_told_which_steps_to_hold():
  network = toys.q_network(_NUM_ACTIONS, _NUM_ACTIONS + 1)
  seen = []

  def unroll(params, observation, prev_action, prev_reward, state, hold):
    seen.append(hold)
    return network.unroll(
      params, observation, prev_action, prev_reward, state, hold
    )

  batch = toys.batch(6, 4, num_actions=_NUM_ACTIONS, num_extra=1)
  loss_fn = learner_core.make_loss(
    network._replace(unroll=unroll),
    config_lib.LearnerConfig(),
    _replay(6, 2),
    hold_flights=True,
  )
  online, target = (network.init(jax.random.PRNGKey(s)) for s in (0, 1))
  loss_fn(online, target, batch, batch.frames, jnp.ones([4]))
  flying = batch.source == types.FLIGHT
  assert 0 < np.mean(flying) < 1
  assert len(seen) == 4
  for hold in (np.concatenate(seen[:2]), np.concatenate(seen[2:])):
    np.testing.assert_array_equal(hold[:-1], flying)
    assert hold.shape == (7, 4)


@pytest.mark.usefixtures('optax_promotes')
@pytest.mark.parametrize('source', [types.OWN, types.FLIGHT])
def test_a_learner_holds_flights_and_nothing_else(source):
  """As configured: what all sequences of one source make of it."""
  batch = _toy_batch()
  batch = batch._replace(source=jnp.full_like(batch.source, source))
  results = []
  for in_flights in ('advance', 'hold'):
    config = config_lib.BTConfig(
      replay=_replay(6),
      transfer=config_lib.TransferConfig(flight_recurrent_state=in_flights),
    )
    core = learner_core.make_learner_core(
      toys.q_network(_NUM_ACTIONS, _NUM_ACTIONS + 1), config, num_stacked=1
    )
    state = core.init(jax.random.PRNGKey(0))
    results.append(jax.jit(core.step)(state, batch, jnp.ones([4]))[1])
  assert np.allclose(*results, rtol=1e-5) == (source == types.OWN)


@pytest.mark.usefixtures('optax_promotes')
def test_step_is_the_same_jitted_and_eager():
  core, step, init = _learner()
  state = init(jax.random.PRNGKey(0))
  batch, probabilities = _toy_batch(), jnp.ones([4])
  eager = core.step(state, batch, probabilities)
  with jax.checking_leaks():
    jitted = jax.jit(core.step)(state, batch, probabilities)
  assert jax.tree.structure(eager) == jax.tree.structure(jitted)
  for x, y in zip(jax.tree.leaves(jitted), jax.tree.leaves(eager), strict=True):
    assert x.dtype == y.dtype
    np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6)


@pytest.mark.usefixtures('optax_promotes')
def test_step_keeps_dtypes_and_is_finite():
  _, step, init = _learner()
  state = init(jax.random.PRNGKey(0))
  batch = _toy_batch(real=[6, 1, 0, 3])
  batch = batch._replace(reward=1e6 * batch.reward)
  new_state, priorities, metrics = step(state, batch, jnp.ones([4]))
  shapes = jax.tree.map(lambda x: (x.shape, x.dtype), state)
  assert jax.tree.map(lambda x: (x.shape, x.dtype), new_state) == shapes
  for leaf in jax.tree.leaves(new_state.params):
    assert leaf.dtype == jnp.float32
  assert priorities.shape == (4,)
  assert priorities.dtype == jnp.float32
  assert priorities[2] == 0
  assert np.all(np.asarray(priorities)[[0, 1, 3]] > 0)
  assert all(value.shape == () for value in metrics.values())
  for leaf in jax.tree.leaves((new_state, priorities, metrics)):
    assert np.all(np.isfinite(leaf))


@pytest.mark.usefixtures('optax_promotes')
def test_target_network_is_copied_exactly_at_multiples_of_its_period():
  _, step, init = _learner()
  state = init(jax.random.PRNGKey(0))
  jax.tree.map(np.testing.assert_array_equal, state.target_params, state.params)
  batch, probabilities = _toy_batch(), jnp.ones([4])
  expected = state.target_params
  for learner_step in range(1, 8):
    state, _, _ = step(state, batch, probabilities)
    assert state.learner_steps == learner_step
    if learner_step in (3, 6):
      expected = state.params
    jax.tree.map(np.testing.assert_array_equal, state.target_params, expected)
    moved = np.any(state.params['value'] != state.target_params['value'])
    assert moved == (learner_step not in (3, 6))


@pytest.mark.usefixtures('optax_promotes')
def test_state_can_be_donated_and_the_callers_parameters_survive():
  core, _, _ = _learner()
  network = toys.q_network(_NUM_ACTIONS, _NUM_ACTIONS + 1)
  params = network.init(jax.random.PRNGKey(5))
  state = core.init(jax.random.PRNGKey(0), params)
  step = jax.jit(core.step, donate_argnums=0)
  first = jax.tree.map(np.array, params)
  for _ in range(4):  # Past a copy to the target network.
    state, _, _ = step(state, _toy_batch(), jnp.ones([4]))
  jax.tree.map(np.testing.assert_array_equal, params, first)
  assert np.any(np.asarray(state.params['value']) != first['value'])


@pytest.mark.usefixtures('optax_promotes')
def test_overfits_one_batch():
  _, step, init = _learner(target_update_period=50)
  state = init(jax.random.PRNGKey(0))
  batch = _toy_batch()
  history = []
  for _ in range(300):
    state, _, metrics = step(state, batch, jnp.ones([4]))
    history.append(float(metrics['loss']))
  assert history[-1] < 0.3 * history[0]


@pytest.mark.usefixtures('optax_promotes')
def test_gradient_is_clipped_in_front_of_adam():
  core, _, init = _learner(max_gradient_norm=0.01, target_update_period=1000)
  state = init(jax.random.PRNGKey(0))
  batch = _toy_batch()
  network = toys.q_network(_NUM_ACTIONS, _NUM_ACTIONS + 1)
  loss_fn = learner_core.make_loss(
    network, config_lib.LearnerConfig(), _replay(6)
  )
  gradients = jax.jit(jax.grad(loss_fn, has_aux=True))(
    state.params, state.target_params, batch, batch.frames, jnp.ones([4])
  )[0]
  norm = optax.tree.norm(gradients)
  assert norm > 0.1
  new_state, _, metrics = jax.jit(core.step)(state, batch, jnp.ones([4]))
  np.testing.assert_allclose(metrics['gradient_norm'], norm, rtol=1e-5)
  # Adam's first step is -lr g / (|g| + eps), which shows the clipped g.
  for name, gradient in gradients.items():
    clipped = np.asarray(gradient * 0.01 / norm)
    np.testing.assert_allclose(
      new_state.params[name] - state.params[name],
      -0.01 * clipped / (np.abs(clipped) + 1e-4),
      rtol=1e-3,
      atol=1e-5,
    )


def test_importance_weights_only_with_an_exponent():
  batch = toys.batch(6, 3, num_actions=_NUM_ACTIONS)
  q_values = _random_q_values(6, 3, _NUM_ACTIONS)

  def gradient(exponent, probabilities):
    loss_fn = learner_core.make_loss(
      _table(_NUM_ACTIONS, _NUM_ACTIONS),
      config_lib.LearnerConfig(importance_sampling_exponent=exponent),
      _replay(6),
    )
    return np.asarray(
      jax.jit(jax.grad(loss_fn, has_aux=True))(
        *map(jnp.asarray, q_values),
        jax.tree.map(jnp.asarray, batch),
        jnp.zeros([1]),
        jnp.asarray(probabilities, jnp.float32),
      )[0]
    )

  plain = gradient(0.0, [0.0, np.nan, 0.5])
  np.testing.assert_array_equal(plain, gradient(0.0, [1.0, 1.0, 1.0]))
  weights = np.array([0.25, 1.0, 0.5]) ** 0.6  # (p_min / p)^0.6
  np.testing.assert_allclose(
    gradient(0.6, [0.04, 0.01, 0.02]), plain * weights[:, None], rtol=1e-5
  )


def test_initial_parameters_are_the_online_and_the_target_networks():
  core, _, _ = _learner()
  params = toys.q_network(_NUM_ACTIONS, _NUM_ACTIONS + 1).init(
    jax.random.PRNGKey(9)
  )
  state = core.init(jax.random.PRNGKey(0), params)
  jax.tree.map(np.testing.assert_array_equal, state.params, params)
  jax.tree.map(np.testing.assert_array_equal, state.target_params, params)
  assert state.intrinsic_params == {}
