"""Tests the loss: test vectors, float64 reference, padding, weights, names."""

import functools

import numpy as np
import pytest

from bt_acme import config as config_lib
from bt_acme.core import types
from tests.core import toys
from tests.reference import losses as reference
from tests.reference import returns


@functools.cache
def _table(num_choices):
  """Creates a network whose parameters are its Q-values, [T + 1, B, A'].

  Its observations are the indices of the rows.
  """

  def unroll(params, observation, prev_action, prev_reward, state):
    del prev_action, prev_reward
    return params[observation], state

  network = toys.q_network(toys.ACTIONS, num_choices)
  return network._replace(unroll_all=toys.each(unroll))


def _loss_and_gradient(
  batch, *q_values, burn_in=0, probabilities=1.0, learner=None
):
  """Returns (loss, priorities, metrics, gradient with respect to q_online).

  Targets have no gradient, so there is none with respect to q_target.
  """
  length, batch_size = batch.reward.shape
  compiled = toys.loss_and_gradient(
    _table(q_values[0].shape[-1]), length, burn_in, learner, argnums=(0, 1)
  )
  (loss, (priorities, metrics)), (gradient, of_target) = compiled(
    *q_values,
    batch,
    np.arange(length + 1, dtype=np.int32),
    np.full(batch_size, probabilities, np.float32),
  )
  np.testing.assert_array_equal(of_target, np.zeros(gradient.shape))
  return loss, priorities, metrics, np.asarray(gradient)


def _random_q_values(length, batch_size, num_choices):
  rng = np.random.default_rng(0)
  shape = (length + 1, batch_size, num_choices)
  return np.float32(rng.normal(size=shape)), np.float32(rng.normal(size=shape))


def _spoil_padding(batch, *q_values):
  """Changes all values after the last valid transition of each sequence."""
  padding = batch.valid == 0
  garbage = np.float32(np.resize([np.nan, np.inf, 1e20], padding.sum()))
  for q in q_values:
    q[1:][padding] = garbage[:, None]
  changed = {}
  for name in ('reward', 'discount', 'probability'):
    changed[name] = getattr(batch, name).copy()
    changed[name][padding] = garbage
  for name in ('action', 'choice', 'source'):
    changed[name] = np.where(padding, np.uint8(99), getattr(batch, name))
  return batch._replace(**changed)


@pytest.mark.parametrize(
  'num_extra, settings, burn_in',
  [
    *((num_extra, {}, 0) for num_extra in (0, 1, 2)),
    *((num_extra, {'loss': 'retrace'}, 0) for num_extra in (0, 2)),
    (2, {'duplicate_flights': False}, 0),
    (2, {'double_q': False}, 0),
    (2, {}, 3),
  ],
)
def test_loss_gradient_and_priorities_match_reference(
  num_extra, settings, burn_in
):
  learner = config_lib.LearnerConfig(**settings)
  batch = toys.batch(6, 5, num_extra=num_extra, real=[6, 1, 3, 5, 0])
  batch.prev_action[0] = [1, types.NO_ACTION, 2, types.NO_ACTION, 0]
  trained = reference.trained(batch.prev_action, batch.valid, burn_in)
  q_online, q_target = _random_q_values(6, 5, toys.ACTIONS + num_extra)
  batch = _spoil_padding(batch, q_online, q_target)
  loss, priorities, metrics, gradient = _loss_and_gradient(
    batch, q_online, q_target, burn_in=burn_in, learner=learner
  )
  targets = returns.targets(learner.loss, q_online, q_target, batch, learner)
  expected = reference.loss_gradient_priorities(
    *(q_online, targets, batch, trained),
    learner=learner,
    num_actions=toys.ACTIONS,
    max_weight=0.9,
  )
  assert gradient.shape == (7, 5, toys.ACTIONS + num_extra)
  np.testing.assert_allclose(loss, expected[0], rtol=1e-5)
  np.testing.assert_allclose(gradient, expected[1], rtol=1e-4, atol=1e-6)
  np.testing.assert_allclose(priorities, expected[2], rtol=1e-5)
  real = trained > 0
  for name, values in (
    ('mean_target', targets),
    ('mean_reward', batch.reward),
    ('mean_q', q_online[:-1].max(axis=-1)),
  ):
    np.testing.assert_allclose(metrics[name], values[real].mean(), rtol=1e-4)


def test_importance_weights_only_with_an_exponent():
  batch = toys.batch(6, 3)
  q_values = _random_q_values(6, 3, toys.ACTIONS)

  def gradient(exponent, probabilities):
    learner = config_lib.LearnerConfig(importance_sampling_exponent=exponent)
    return _loss_and_gradient(
      batch, *q_values, probabilities=probabilities, learner=learner
    )[-1]

  plain = gradient(0.0, [0.0, np.nan, 0.5])
  np.testing.assert_array_equal(plain, gradient(0.0, [1.0, 1.0, 1.0]))
  weights = np.array([0.25, 1.0, 0.5]) ** 0.6  # (p_min / p)^0.6
  np.testing.assert_allclose(
    gradient(0.6, [0.04, 0.01, 0.02]), plain * weights[:, None], rtol=1e-5
  )
