"""Tests kickstarting: values, extremes, its part of the loss, its effect."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme import config as config_lib
from bt_acme.core import learner_core, types
from bt_acme.core.behavior_transfer import kickstarting
from tests.core import toys
from tests.reference import kickstarting as reference

_LENGTH, _BATCH = 6, 4
_jitted = jax.jit(kickstarting.cross_entropy)
_gradient = jax.jit(
  jax.grad(lambda *x, **y: kickstarting.cross_entropy(*x, **y).sum())
)


@pytest.mark.parametrize('scale', [0.0, 1e-6, 1.0, 1e4])
@pytest.mark.parametrize('temperature', [1e-6, 0.1, 1.0, 1e6])
@pytest.mark.parametrize('num_actions', [1, 2, 5])
def test_cross_entropy_matches_the_reference(scale, temperature, num_actions):
  rng = np.random.default_rng(num_actions)
  shape = (_LENGTH, _BATCH, num_actions)
  q_values = np.float32(scale * rng.normal(size=shape))
  proposal = rng.integers(0, num_actions, shape[:2]).astype(np.int32)
  settings = {'temperature': temperature}
  actual = _jitted(q_values, proposal, **settings)
  assert actual.shape == shape[:2] and actual.dtype == jnp.float32
  rows = q_values.reshape(-1, num_actions).tolist(), proposal.ravel().tolist()
  expected = [
    reference.cross_entropy(q, b, temperature=temperature)
    for q, b in zip(*rows, strict=True)
  ]
  rounding = 1e-6 * max(1, scale / temperature)
  np.testing.assert_allclose(
    actual, np.reshape(expected, shape[:2]), rtol=1e-5, atol=rounding
  )
  assert (np.asarray(actual) >= 0).all()
  gradient = np.asarray(_gradient(q_values, proposal, **settings))
  assert np.isfinite(gradient).all()
  # A shift of all values changes nothing; the proposed value never falls.
  largest = np.abs(gradient).max()
  np.testing.assert_allclose(gradient.sum(axis=-1), 0, atol=1e-5 * largest)
  proposed = np.take_along_axis(gradient, proposal[..., None], axis=-1)
  assert (proposed <= 0).all()


@pytest.mark.parametrize('steps', [0, 1, 50, 99, 100, 101, 2**31 - 1])
@pytest.mark.parametrize('initial', [1e-30, 0.5, 1e9])
def test_the_weight_falls_to_zero(steps, initial):
  config = config_lib.TransferConfig(
    kickstarting=initial, kickstarting_steps=100
  )
  actual = kickstarting.weighted_loss(
    jnp.zeros([1, 1, 2]), jnp.zeros([1, 1], int), jnp.int32(steps), config
  )
  assert actual.shape == (1, 1) and actual.dtype == jnp.float32
  expected = reference.weight(steps, initial=initial, num_steps=100)
  np.testing.assert_allclose(actual, expected * np.log(2), rtol=1e-5)
  if steps >= 100:
    assert actual == 0


_NETWORK = toys.q_network(toys.ACTIONS, toys.ACTIONS + 2)
_PARAMS = [toys.random_params(_NETWORK.init, seed, 1.0) for seed in range(2)]


def _batch(real=None):
  batch = toys.batch(_LENGTH, _BATCH, num_extra=2, real=real)
  proposal = np.random.default_rng(1).integers(0, 3, batch.action.shape)
  return batch._replace(proposal=proposal.astype(np.int32))


def _losses(transfer, batch, learner_steps=0):
  """Returns the loss, its gradient and its metrics."""
  compiled = toys.loss_and_gradient(_NETWORK, _LENGTH, 2, transfer=transfer)
  probabilities = np.ones(_BATCH, np.float32)
  (loss, (priorities, metrics)), gradient = compiled(
    *_PARAMS, batch, batch.frames, probabilities, learner_steps
  )
  return loss, priorities, gradient, metrics


_TRANSFER = config_lib.TransferConfig(
  kickstarting=0.5, kickstarting_steps=10, kickstarting_temperature=0.2
)


def test_the_loss_adds_the_cross_entropy_of_trained_steps():
  batch = _batch(real=[_LENGTH, _LENGTH, 4, 1])
  without, priorities, _, metrics = _losses(None, batch)
  assert 'kickstarting_loss' not in metrics
  loss, same_priorities, _, metrics = _losses(_TRANSFER, batch, 4)
  np.testing.assert_array_equal(priorities, same_priorities)
  inputs = batch.frames, batch.prev_action, batch.prev_reward
  q_values, _ = toys.unroll_of(_NETWORK)(
    _PARAMS[0], *inputs, batch.recurrent_state
  )
  total = count = 0.0
  for column in range(_BATCH):
    starts = batch.prev_action[0, column] == types.NO_ACTION
    for t in range(0 if starts else 2, _LENGTH):  # After the burn-in.
      if batch.valid[t, column]:
        count += 1
        total += reference.cross_entropy(
          np.float64(q_values[t, column, : toys.ACTIONS]).tolist(),
          int(batch.proposal[t, column]),
          temperature=0.2,
        )
  assert count > 8
  np.testing.assert_allclose(loss, without + 0.3 * total / _BATCH, rtol=1e-5)
  np.testing.assert_allclose(
    metrics['kickstarting_loss'], 0.3 * total / count, rtol=1e-5
  )
  _, _, gradient, _ = _losses(_TRANSFER, _batch(real=[0] * _BATCH))
  assert all(not x.any() for x in jax.tree.leaves(gradient))


def test_the_learner_lowers_the_weight():
  core = learner_core.make_learner_core(
    _NETWORK,
    toys.agent_config(config_lib.LearnerConfig(), _LENGTH, 2),
    num_stacked=1,
    transfer=_TRANSFER,
  )
  batch, losses = _batch(), []
  state, step = core.init(jax.random.key(0)), jax.jit(core.step)
  with jax.numpy_dtype_promotion('standard'):  # For optax.
    for _ in range(11):
      state, _, metrics = step(state, batch, np.ones(_BATCH, np.float32))
      losses.append(float(metrics['kickstarting_loss']))
  assert losses[0] > losses[1] > losses[9] > losses[10] == 0
