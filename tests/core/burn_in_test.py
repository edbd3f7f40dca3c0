"""Tests the burn-in: its parameters, gradients and held steps."""

import chex
import jax
import jax.numpy as jnp
import numpy as np

from bt_acme import config as config_lib
from bt_acme.core import types
from tests.core import toys

_NETWORK = toys.q_network(toys.ACTIONS, toys.ACTIONS + 1)


def _result(batch, burn_in_length):
  """Returns ((loss, (priorities, metrics)), gradient) of a toy network."""
  params = toys.random_params(_NETWORK.init)
  return toys.loss_and_gradient(_NETWORK, len(batch.reward), burn_in_length)(
    params, params, batch, batch.frames, jnp.ones(batch.reward.shape[1])
  )


def _batch(prev_action, **settings):
  """Creates sequences with the given first previous actions."""
  batch = toys.batch(6, len(prev_action), num_extra=1, **settings)
  batch.prev_action[0] = prev_action
  return batch


def _assert_same(result, expected):
  (loss, (priorities, _)), gradient = result
  (expected_loss, (expected_priorities, _)), expected_gradient = expected
  np.testing.assert_allclose(loss, expected_loss, rtol=1e-5)
  np.testing.assert_allclose(priorities, expected_priorities, rtol=1e-5)
  chex.assert_trees_all_close(gradient, expected_gradient, rtol=1e-4, atol=1e-6)


def test_burn_in_warms_up_the_state_without_gradient_unless_it_is_known():
  batch = _batch([0, 2])
  # Each network warms up its own state; here, both are the same network.
  _, state = toys.unroll_of(_NETWORK)(
    toys.random_params(_NETWORK.init),
    batch.frames[:2],
    batch.prev_action[:2],
    batch.prev_reward[:2],
    batch.recurrent_state,
  )
  tail = jax.tree.map(
    lambda x: x[2:], batch._replace(recurrent_state=None)
  )._replace(recurrent_state=state)
  _assert_same(_result(batch, 2), _result(tail, 0))

  batch = _batch([types.NO_ACTION] * 2, real=[6, 4])  # It starts an episode.
  _assert_same(_result(batch, 2), _result(batch, 0))


def test_each_network_burns_in_with_its_own_parameters_and_held_steps():
  states, holds = [], []

  def unroll(params, observation, prev_action, prev_reward, state, hold):
    q_values, after = toys.unroll_of(_NETWORK)(
      params, observation, prev_action, prev_reward, state, hold
    )
    states.append((state.cell, after.cell))
    holds.append(hold)
    return q_values, after

  batch = toys.batch(6, 4, num_extra=1)
  recording = _NETWORK._replace(unroll_all=toys.each(unroll))
  transfer = config_lib.TransferConfig(flight_recurrent_state='hold')
  loss_fn = toys.loss_fn(recording, 6, 2, transfer=transfer)
  online, target = (toys.random_params(_NETWORK.init, s) for s in (0, 1))
  loss_fn(online, target, batch, batch.frames, jnp.ones([4]))
  flying = batch.source == types.FLIGHT
  assert 0 < np.mean(flying) < 1
  assert [len(hold) for hold in holds] == [2, 2, 5, 5]
  for i in (0, 1):  # The burn-ins of both networks; the traces follow.
    np.testing.assert_array_equal(states[i][0], batch.recurrent_state.cell)
    np.testing.assert_array_equal(states[i][1], states[i + 2][0])
    hold = np.concatenate([holds[i], holds[i + 2]])
    np.testing.assert_array_equal(hold[:-1], flying)
    assert hold.shape == (7, 4)
  assert np.any(states[2][0] != states[3][0])
