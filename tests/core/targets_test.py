"""Tests Q(lambda) and Retrace: vectors, reference, invariants, extremes."""

import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import rlax

from bt_acme.core import returns, returns_on_device, targets
from tests.core import toys
from tests.reference import returns as reference
from tests.reference import value_rescaling

_EPSILON = 1e-3
# Computed independently of this project and verified with rlax 0.1.9:
# T = 3, three choices, gamma 0.99.
_Q_ONLINE = [[0.5, 0.1, 0.2], [0.3, 0.9, 0.4], [1.0, 0.2, 0.7], [0.6, 0.8, 0.1]]
_Q_TARGET = [[0.4, 0.2, 0.1], [0.2, 0.7, 0.5], [0.6, 0.3, 0.9], [0.5, 0.6, 0.2]]


def _column(values, dtype=np.float32):
  return np.asarray(values, dtype)[:, None]


def _column_example(discount_t):
  """Returns the sequence of the test vectors as a batch of one."""
  return {
    'q_online': _column(_Q_ONLINE),
    'q_target': _column(_Q_TARGET),
    'reward': _column([1, 0, 5]),
    'discount_t': _column(discount_t),
    'valid': _column([1, 1, 1]),
  }


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
  transitions = returns.Transitions(
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
    return _compute(loss, column, returns.returns_on_host, epsilon, **settings)

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


_BOTH = pytest.mark.parametrize('by', ['cpu', 'gpu', 'host'])
_EVERY_LOSS = pytest.mark.parametrize('loss', list(targets.TARGETS))


@pytest.mark.parametrize('by', ['cpu', 'gpu', 'host', 'reference'])
@pytest.mark.parametrize(
  'last_discount, expected',
  [
    (0.99, [1.458602, 1.453197, 1.752350]),
    (0.0, [1.302265, 1.223576, 1.454490]),
  ],
)
def test_q_lambda_vector(by, last_discount, expected):
  example = _column_example(discount_t=[0.99, 0.99, last_discount])
  actual = _targets(
    'q_lambda', example, {}, trace_decay=0.7, epsilon=_EPSILON, by=by
  )
  assert actual.shape == (3, 1)
  np.testing.assert_allclose(actual[:, 0], expected, atol=1.5e-6)


@pytest.mark.parametrize('by', ['cpu', 'gpu', 'host', 'reference'])
def test_retrace_vector(by):
  example = _column_example(discount_t=[0.99, 0.99, 0.99])
  taken = {
    'action': _column([0, 1, 1], np.int32),
    'probability': _column([0.9, 0.05, 0.6]),
  }
  actual = _targets(
    'retrace', example, taken, trace_decay=0.95, epsilon=_EPSILON, by=by
  )
  assert actual.shape == (3, 1)
  expected = [0.890295, 0.604884, 1.751489]
  np.testing.assert_allclose(actual[:, 0], expected, atol=1.5e-6)


@_BOTH
@_EVERY_LOSS
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


@_BOTH
@_EVERY_LOSS
def test_nothing_crosses_a_terminal(loss, by):
  example, taken = _example()
  example['valid'][:] = 1
  example['discount_t'][:] = 0.99
  example['discount_t'][3] = 0.0
  settings = {'by': by, 'trace_decay': 0.9, 'epsilon': _EPSILON}
  expected = _targets(loss, example, taken, **settings)
  for name in ('q_online', 'q_target', 'reward'):
    example[name][4:] += np.float32(5.0)
  actual = _targets(loss, example, taken, **settings)
  np.testing.assert_array_equal(actual[:4], expected[:4])
  assert np.all(actual[4:] != expected[4:])
  np.testing.assert_allclose(
    expected[3],
    value_rescaling.rescale(example['reward'][3], _EPSILON),
    rtol=1e-5,
  )


@_EVERY_LOSS
def test_at_one_greedy_actions_give_the_discounted_return(loss):
  example, taken = _example()
  example['valid'][:] = 1
  example['discount_t'][:] = 0.9
  example['discount_t'][-1] = 0.0
  taken['action'] = np.argmax(example['q_online'][:-1], axis=-1).astype('i4')
  settings = {'trace_decay': 1.0, 'epsilon': 0.0, 'target_policy_epsilon': 0.0}
  actual = _targets(loss, example, taken, **settings)
  expected = sum(0.9**t * example['reward'][t] for t in range(7))
  np.testing.assert_allclose(actual[0], expected, rtol=1e-4, atol=1e-5)


@_EVERY_LOSS
def test_at_zero_targets_bootstrap_after_one_step(loss):
  """Double Q-learning, or expected SARSA for Retrace."""
  example, taken = _example()
  actual = _targets(loss, example, taken, trace_decay=0.0, epsilon=0.0)
  greedy = np.eye(4)[np.argmax(example['q_online'][1:], axis=-1)]
  policy = 0.99 * greedy + 0.01 / 4 if loss == 'retrace' else greedy
  values = np.sum(policy * example['q_target'][1:], axis=-1)
  expected = example['reward'] + example['discount_t'] * values
  real = example['valid'] > 0
  np.testing.assert_allclose(actual[real], expected[real], rtol=1e-5, atol=1e-6)


def test_whole_sequences_agree_with_rlax():
  example, taken = _example()
  example['valid'][:] = 1
  column = {name: jnp.asarray(x[:, 0]) for name, x in example.items()}
  action, mu = (jnp.asarray(taken[k][:, 0]) for k in ('action', 'probability'))
  best = jnp.argmax(column['q_online'], axis=-1)
  q_lambda = rlax.transformed_lambda_returns(
    rlax.SIGNED_HYPERBOLIC_PAIR,
    column['reward'],
    column['discount_t'],
    jnp.take_along_axis(column['q_target'], best[:, None], axis=-1)[1:, 0],
    0.7,
  )
  greedy = jax.nn.one_hot(best, 4, dtype=jnp.float32)
  policy = 0.99 * greedy + 0.01 / 4
  # rlax also takes the action and its probability after the last step, but
  # does not use them.
  errors = rlax.transformed_retrace(
    column['q_online'][:-1],
    column['q_target'][1:],
    action,
    jnp.append(action[1:], 0),
    column['reward'],
    column['discount_t'],
    policy[1:],
    jnp.append(mu[1:], 1.0),
    0.95,
    tx_pair=rlax.SIGNED_HYPERBOLIC_PAIR,
  )
  taken_q = jnp.take_along_axis(
    column['q_online'][:-1], action[:, None], axis=-1
  )[:, 0]
  for by in ('cpu', 'gpu', 'host'):
    for loss, trace_decay, expected in (
      ('q_lambda', 0.7, q_lambda),
      ('retrace', 0.95, errors + taken_q),
    ):
      actual = _targets(
        loss, example, taken, trace_decay=trace_decay, epsilon=_EPSILON, by=by
      )
      np.testing.assert_allclose(actual[:, 0], expected, rtol=2e-3, atol=2e-3)


def test_retrace_depends_on_actions_but_peng_does_not():
  example, taken = _example()
  other = {**taken, 'action': (taken['action'] + 1) % 4}
  settings = {'trace_decay': 0.7, 'epsilon': _EPSILON}
  changed = {
    loss: np.any(
      _targets(loss, example, taken, **settings)
      != _targets(loss, example, other, **settings)
    )
    for loss in ('q_lambda', 'retrace')
  }
  assert changed == {'q_lambda': False, 'retrace': True}
