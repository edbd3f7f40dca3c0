"""The burn-in: whose parameters unroll it, and which steps it holds."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from bt_acme import config as config_lib
from bt_acme.core import loss as loss_lib
from bt_acme.core import types
from tests.core import toys

_NUM_ACTIONS = 3


def _loss_fn(network, replay, **settings):
  return functools.partial(
    loss_lib.q_network_loss,
    network=network,
    learner=config_lib.LearnerConfig(),
    replay=replay,
    **settings,
  )


def test_burn_in_warms_the_state_up_without_gradient():
  network = toys.q_network(_NUM_ACTIONS, _NUM_ACTIONS)
  params = network.init(jax.random.PRNGKey(0))
  batch = toys.batch(6, 2, num_actions=_NUM_ACTIONS)

  def result(batch, burn_in):
    loss_fn = _loss_fn(network, toys.replay_config(len(batch.reward), burn_in))
    return jax.jit(jax.value_and_grad(loss_fn, has_aux=True))(
      params, params, batch, batch.frames, jnp.ones([2])
    )

  # Each network warms its own state up; here one network stands for both.
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
  loss_fn = _loss_fn(network._replace(unroll=unroll), toys.replay_config(6, 2))
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
  loss_fn = _loss_fn(
    network._replace(unroll=unroll),
    toys.replay_config(6, 2),
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
