"""Tests Q(lambda) and Retrace: vectors, reference, invariants, extremes."""

import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme.core import return_recursion, returns_on_device, targets
from bt_acme.core import types as core_types
from tests.core import toys
from tests.reference import returns as reference

_EPSILON = 1e-3


def _transitions(action, probability, reward, discount, valid):
  """Returns own choices."""
  action = np.asarray(action, np.int32)
  return core_types.SequenceBatch(
    action=action,
    choice=action,
    source=np.zeros_like(action, np.uint8),
    probability=np.float32(probability),
    reward=np.float32(reward),
    discount=np.float32(discount),
    valid=np.float32(valid),
  )


def _example(scale=1.0):
  """Returns random arguments of a target; sequence 1 has only one step."""
  rng = np.random.default_rng(0)
  steps, values = (7, 5), (8, 5, 4)
  real = np.array([7, 1, *rng.integers(1, 7, 3)])
  return (
    np.float32(rng.normal(size=values)),
    np.float32(3 * rng.normal(size=values)),
    _transitions(
      action=rng.integers(0, 4, size=steps),
      probability=rng.uniform(0.02, 1, size=steps),
      reward=scale * rng.normal(size=steps),
      discount=0.99 * (rng.uniform(size=steps) < 0.8),
      valid=np.arange(7)[:, None] < real,
    ),
  )


def _targets(loss, inputs, *, by, trace_decay, epsilon):
  """Computes targets as on a `cpu` or `gpu`, on a `host`, or by `reference`."""
  if by in ('cpu', 'gpu'):
    return np.asarray(_on_device(loss, inputs, by, epsilon, trace_decay))
  config = _config(trace_decay, epsilon)
  if by == 'reference':
    return reference.targets(loss, *inputs, config)
  compute, recursion = targets.TARGETS[loss], return_recursion.returns_on_host
  columns = (
    jax.tree.map(lambda x, b=b: x[:, b], inputs)
    for b in range(inputs[-1].reward.shape[1])
  )
  return np.stack([compute(*x, config, recursion) for x in columns], axis=1)


def _config(trace_decay, epsilon):
  return types.SimpleNamespace(
    discount=1.0,
    double_q=True,
    target_policy_epsilon=0.01,
    trace_decay=trace_decay,
    value_rescaling_epsilon=epsilon,
  )


@functools.partial(jax.jit, static_argnames=('loss', 'by', 'epsilon'))
def _on_device(loss, inputs, by, epsilon, trace_decay):
  with toys.as_on(by):
    recursion = returns_on_device.returns_on_device
    config = _config(trace_decay, epsilon)
    return targets.TARGETS[loss](*inputs, config, recursion)


@pytest.mark.parametrize(
  'loss, trace_decay, last_discount, expected',
  [
    ('q_lambda', 0.7, 0.99, [1.458602, 1.453197, 1.752350]),
    ('q_lambda', 0.7, 0.0, [1.302265, 1.223576, 1.454490]),
    ('retrace', 0.95, 0.99, [0.890295, 0.604884, 1.751489]),
  ],
)
def test_the_reference_matches_vectors(
  loss, trace_decay, last_discount, expected
):
  # Computed independently of this project and verified with rlax 0.1.9:
  # T = 3, three choices, gamma 0.99.
  q_online = [[0.5, 0.1, 0.2], [0.3, 0.9, 0.4], [1, 0.2, 0.7], [0.6, 0.8, 0.1]]
  q_target = [
    [0.4, 0.2, 0.1],
    [0.2, 0.7, 0.5],
    [0.6, 0.3, 0.9],
    [0.5, 0.6, 0.2],
  ]
  transitions = _transitions(
    action=[[0], [1], [1]],
    probability=[[0.9], [0.05], [0.6]],
    reward=[[1], [0], [5]],
    discount=[[0.99], [0.99], [last_discount]],
    valid=[[1], [1], [1]],
  )
  inputs = (*np.float32([q_online, q_target])[:, :, None], transitions)
  settings = {'trace_decay': trace_decay, 'epsilon': _EPSILON}
  actual = _targets(loss, inputs, by='reference', **settings)
  np.testing.assert_allclose(actual[:, 0], expected, atol=1.5e-6)


@pytest.mark.parametrize('by', ['cpu', 'gpu', 'host'])
@pytest.mark.parametrize('loss', list(targets.TARGETS))
@pytest.mark.parametrize(
  'trace_decay, epsilon, scale',
  [
    *((decay, e, 1.0) for decay in (0.0, 0.7, 1.0) for e in (0.0, _EPSILON)),
    *((0.9, _EPSILON, scale) for scale in (1e-6, 1e6)),  # Tiny and huge values.
  ],
)
def test_targets_match_reference(loss, trace_decay, epsilon, scale, by):
  inputs = _example(scale=scale)
  settings = {'trace_decay': trace_decay, 'epsilon': epsilon}
  actual = _targets(loss, inputs, by=by, **settings)
  expected = _targets(loss, inputs, by='reference', **settings)
  assert actual.shape == (7, 5)
  assert actual.dtype == (np.float64 if by == 'host' else np.float32)
  real = inputs[-1].valid > 0
  assert 7 < real.sum() < 35
  np.testing.assert_allclose(actual[real], expected[real], rtol=1e-4, atol=1e-5)


def test_values_may_have_half_precision():
  *values, transitions = _example()
  half = [x.astype(jnp.bfloat16) for x in values]
  settings = {'by': 'cpu', 'trace_decay': 0.5, 'epsilon': 0.0}
  with jax.numpy_dtype_promotion('standard'):
    actual, expected = (
      _targets('q_lambda', (*map(np.asarray, x), transitions), **settings)
      for x in (half, [x.astype(np.float32) for x in half])
    )
  assert actual.dtype == np.float32
  np.testing.assert_array_equal(actual, expected)
