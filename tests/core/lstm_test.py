"""Tests the LSTM against Haiku's LSTM and against float64 NumPy."""

import functools

import chex
import haiku as hk
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme.core import lstm
from tests.core import toys
from tests.reference import network as reference

_INPUT, _HIDDEN = 5, 4


def _ours(inputs, hidden, cell, hold=None):
  parameters = lstm.parameters(_INPUT, _HIDDEN)
  recurrence = lstm.Recurrence(*parameters, inputs, hidden, cell)
  [(outputs, state)] = lstm.unroll([recurrence], hold)
  return outputs, state.hidden, state.cell


def _haikus(inputs, hidden, cell):
  core = hk.LSTM(_HIDDEN, name='lstm')
  outputs, state = hk.dynamic_unroll(core, inputs, hk.LSTMState(hidden, cell))
  return outputs, state.hidden, state.cell


def _example(length, batch_size=3, scale=1.0):
  rng = np.random.default_rng(length)

  def normal(*shape):
    return jnp.asarray(rng.normal(size=shape), jnp.float32)

  inputs = scale * normal(length, batch_size, _INPUT)
  return inputs, normal(batch_size, _HIDDEN), normal(batch_size, _HIDDEN)


def _twice(inputs, hidden, cell):
  """Unrolls an LSTM and, together with it, one with other parameters."""
  w, b = lstm.parameters(_INPUT, _HIDDEN)
  [(outputs, state), _] = lstm.unroll(
    [
      lstm.Recurrence(w, b, inputs, hidden, cell),
      lstm.Recurrence(2 * w, b - 1, -inputs, cell, hidden),
    ]
  )
  return outputs, state.hidden, state.cell


def _transformed(function):
  return hk.without_apply_rng(hk.transform(function))


def _params(example):
  params = _transformed(_ours).init(jax.random.PRNGKey(0), *example)
  noise = np.random.default_rng(7).normal(size=4 * _HIDDEN)
  params['lstm/linear']['b'] = jnp.asarray(noise, jnp.float32)
  return params


def test_parameters_equal_haikus():
  example = _example(2)
  key = jax.random.PRNGKey(3)
  ours = _transformed(_ours).init(key, *example)
  haikus = _transformed(_haikus).init(key, *example)
  assert ours['lstm/linear']['w'].dtype == jnp.float32
  chex.assert_trees_all_equal(ours, haikus)


def _values_and_gradients(function, length):
  """Returns the values of an LSTM, and the gradients of a sum of them."""
  example = _example(length)
  rng = np.random.default_rng(1)
  shapes = [(length, 3, _HIDDEN), (3, _HIDDEN), (3, _HIDDEN)]
  cotangents = [jnp.asarray(rng.normal(size=s), jnp.float32) for s in shapes]

  def scalar(params, *example):
    values = _transformed(function).apply(params, *example)
    assert [v.shape for v in values] == shapes
    return sum(
      jnp.vdot(c, v) for c, v in zip(cotangents, values, strict=True)
    ), values

  gradients, values = jax.jit(
    jax.grad(scalar, argnums=(0, 1, 2, 3), has_aux=True)
  )(_params(example), *example)
  return values, gradients


@functools.cache
def _expected(length):
  return _values_and_gradients(_haikus, length)


@pytest.mark.parametrize(
  'length, cpu_rows, platform',
  [
    *[(1, 1024, 'cpu'), (2, 1024, 'cpu'), (11, 1024, 'cpu'), (11, 6, 'cpu')],
    *[(8, 1, 'cpu'), (2, 1024, 'gpu'), (16, 1024, 'gpu'), (39, 1024, 'gpu')],
  ],
)
@pytest.mark.parametrize('ours', (_ours, _twice))
def test_values_and_all_gradients_equal_haikus(
  ours, length, cpu_rows, platform, monkeypatch
):
  monkeypatch.setattr(lstm, '_CPU_ROWS', cpu_rows)
  with toys.as_on(platform):
    found = _values_and_gradients(ours, length)
  expected = _expected(length)
  assert all(np.any(x != 0) for x in jax.tree.leaves(found))
  chex.assert_trees_all_close(found, expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(
  'length, scale, held',
  [(12, 1.0, 0), (12, 1e4, 0), (12, 1.0, 0.4), (1, 1.0, 0.4)],
)
def test_values_equal_float64(length, scale, held):
  example = _example(length, scale=scale)
  params = _params(example)
  hold = np.random.default_rng(0).random((length, 3)) < held
  holds = [jnp.asarray(hold)] if held else []
  actual = _transformed(_ours).apply(params, *example, *holds)
  with np.errstate(over='ignore'):
    expected = reference.lstm_unroll(
      params['lstm/linear']['w'], params['lstm/linear']['b'], *example, hold
    )
  for x, y in zip(actual, expected, strict=True):
    assert x.shape == y.shape
    np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


def test_gradients_stay_finite_where_gates_saturate():
  example = _example(50, scale=1e4)
  params = _params(example)

  def scalar(params, *example):
    return jnp.sum(_transformed(_ours).apply(params, *example)[0])

  gradients = jax.grad(scalar, argnums=(0, 1, 2, 3))(params, *example)
  for leaf in jax.tree.leaves(gradients):
    assert np.all(np.isfinite(leaf))


def test_program_does_not_grow_with_the_sequence():
  """With a static unroll, the gradient at T = 160 took 37 s to compile."""

  def program(length):
    def scalar(params, *example):
      return jnp.sum(_transformed(_ours).apply(params, *example)[0])

    example = _example(length)
    return len(
      jax.jit(jax.grad(scalar)).lower(_params(example), *example).as_text()
    )

  assert program(160) < 1.05 * program(8)


@pytest.mark.parametrize('platform', ('cpu', 'gpu'))
@pytest.mark.parametrize('length', (1, 7, 35))
def test_lstms_that_unroll_together_equal_each_alone(length, platform):
  """Their parameters, inputs and states differ."""
  rng = np.random.default_rng(0)
  recurrences = [
    lstm.Recurrence(
      *(
        jnp.asarray(rng.normal(size=shape), jnp.float32)
        for shape in (
          (_INPUT + _HIDDEN, 4 * _HIDDEN),
          (4 * _HIDDEN,),
          (length, 3, _INPUT),
          (3, _HIDDEN),
          (3, _HIDDEN),
        )
      )
    )
    for _ in range(3)
  ]
  expected = [jax.jit(lstm.unroll)([each])[0] for each in recurrences]
  with toys.as_on(platform):
    actual = jax.jit(lstm.unroll)(recurrences)
  chex.assert_trees_all_close(actual, expected, rtol=1e-5, atol=1e-6)
