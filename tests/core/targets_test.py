"""Tests Q(lambda) and Retrace: vectors, reference, invariants, extremes."""

import functools
import types

import jax
import numpy as np
import pytest

from bt_acme.core import return_recursion, returns_on_device, targets
from tests.core import toys
from tests.reference import returns as reference

_EPSILON = 1e-3


def _column(values, dtype=np.float32):
  return np.asarray(values, dtype)[:, None]


def _example(length=7, batch_size=5, num_choices=4, seed=0, scale=1.0):
  """Returns random arguments of a target; sequence 1 has only one step."""
  rng = np.random.default_rng(seed)
  steps, values = (length, batch_size), (length + 1, batch_size, num_choices)
  real = np.array([length, 1] + [*rng.integers(1, length, batch_size - 2)])
  example = {
    'q_online': rng.normal(size=values),
    'q_target': 3 * rng.normal(size=values),
    'reward': scale * rng.normal(size=steps),
    'discount_t': 0.99 * (rng.uniform(size=steps) < 0.8),
    'valid': np.arange(length)[:, None] < real,
  }
  example = {name: np.float32(x) for name, x in example.items()}
  taken = {
    'action': rng.integers(0, num_choices, size=steps).astype(np.int32),
    'probability': np.float32(rng.uniform(0.02, 1, size=steps)),
  }
  return example, taken


def _targets(
  loss,
  example,
  taken,
  *,
  trace_decay,
  epsilon,
  target_policy_epsilon=0.01,
  by='cpu',
):
  """Computes targets as on a `cpu` or `gpu`, on a `host`, or by `reference`."""
  settings = {'trace_decay': trace_decay}
  if loss == 'retrace':
    settings['target_policy_epsilon'] = target_policy_epsilon
  if by == 'reference':
    arguments = {**example, **(taken if loss == 'retrace' else {})}
    function = getattr(reference, f'{loss}_targets')
    return function(**arguments, **settings, epsilon=epsilon)
  steps = example['reward'].shape
  action = taken.get('action', np.zeros(steps, np.int32))
  transitions = return_recursion.Transitions(
    choice=action,
    action=action,
    source=np.zeros(steps, np.uint8),
    probability=taken.get('probability', np.ones(steps, np.float32)),
    reward=example['reward'],
    discount=example['discount_t'],
    valid=example['valid'],
  )
  inputs = example['q_online'], example['q_target'], transitions
  if by in ('cpu', 'gpu'):
    return np.asarray(_on_device(loss, inputs, by, epsilon, **settings))

  def compute_one(b):
    column = jax.tree.map(lambda x: x[:, b], inputs)
    return _compute(
      loss, column, return_recursion.returns_on_host, epsilon, **settings
    )

  return np.stack([compute_one(b) for b in range(steps[1])], axis=1)


def _compute(loss, inputs, recursion, epsilon, **settings):
  config = types.SimpleNamespace(
    discount=1.0, double_q=True, value_rescaling_epsilon=epsilon, **settings
  )
  return targets.TARGETS[loss](*inputs, config, recursion)


@functools.partial(jax.jit, static_argnames=('loss', 'by', 'epsilon'))
def _on_device(loss, inputs, by, epsilon, **settings):
  with toys.as_on(by):
    recursion = returns_on_device.returns_on_device
    return _compute(loss, inputs, recursion, epsilon, **settings)


@pytest.mark.parametrize('by', ['cpu', 'gpu', 'host', 'reference'])
@pytest.mark.parametrize(
  'loss, trace_decay, last_discount, expected',
  [
    ('q_lambda', 0.7, 0.99, [1.458602, 1.453197, 1.752350]),
    ('q_lambda', 0.7, 0.0, [1.302265, 1.223576, 1.454490]),
    ('retrace', 0.95, 0.99, [0.890295, 0.604884, 1.751489]),
  ],
)
def test_vectors(loss, trace_decay, last_discount, expected, by):
  # Computed independently of this project and verified with rlax 0.1.9:
  # T = 3, three choices, gamma 0.99.
  q_online = [[0.5, 0.1, 0.2], [0.3, 0.9, 0.4], [1, 0.2, 0.7], [0.6, 0.8, 0.1]]
  q_target = [
    [0.4, 0.2, 0.1],
    [0.2, 0.7, 0.5],
    [0.6, 0.3, 0.9],
    [0.5, 0.6, 0.2],
  ]
  example = {
    'q_online': _column(q_online),
    'q_target': _column(q_target),
    'reward': _column([1, 0, 5]),
    'discount_t': _column([0.99, 0.99, last_discount]),
    'valid': _column([1, 1, 1]),
  }
  taken = {
    'action': _column([0, 1, 1], np.int32),
    'probability': _column([0.9, 0.05, 0.6]),
  }
  actual = _targets(
    loss, example, taken, trace_decay=trace_decay, epsilon=_EPSILON, by=by
  )
  assert actual.shape == (3, 1)
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
  example, taken = _example(scale=scale)
  settings = {'trace_decay': trace_decay, 'epsilon': epsilon}
  actual = _targets(loss, example, taken, by=by, **settings)
  expected = _targets(loss, example, taken, by='reference', **settings)
  assert actual.shape == (7, 5)
  assert actual.dtype == (np.float64 if by == 'host' else np.float32)
  real = example['valid'] > 0
  assert 7 < real.sum() < 35
  np.testing.assert_allclose(actual[real], expected[real], rtol=1e-4, atol=1e-5)
