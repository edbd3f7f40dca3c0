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


def _example(length, scale=1.0):
  rng = np.random.default_rng(length)

  def normal(*shape):
    return np.float32(rng.normal(size=shape))

  inputs = np.float32(scale) * normal(length, 3, _INPUT)
  return inputs, normal(3, _HIDDEN), normal(3, _HIDDEN)


def _with_another(position):
  """Returns a function that unrolls an LSTM together with another one."""

  def unroll(inputs, hidden, cell):
    w, b = lstm.parameters(_INPUT, _HIDDEN)
    both = [lstm.Recurrence(2 * w, b - 1, -inputs, cell, hidden)]
    both.insert(position, lstm.Recurrence(w, b, inputs, hidden, cell))
    outputs, state = lstm.unroll(both)[position]
    return outputs, state.hidden, state.cell

  return unroll


_FIRST, _SECOND = map(_with_another, range(2))


def _params():
  rng = np.random.default_rng(7)
  size = _INPUT + _HIDDEN
  w = rng.normal(size=(size, 4 * _HIDDEN)) / size**0.5
  b = rng.normal(size=4 * _HIDDEN)
  return {'lstm/linear': {'w': np.float32(w), 'b': np.float32(b)}}


def _values_and_gradients(function, length):
  """Returns the values of an LSTM, and the gradients of a sum of them."""
  example = _example(length)
  rng = np.random.default_rng(1)
  shapes = [(length, 3, _HIDDEN), (3, _HIDDEN), (3, _HIDDEN)]
  cotangents = [np.float32(rng.normal(size=s)) for s in shapes]

  def scalar(params, *example):
    values = toys.transformed(function).apply(params, *example)
    assert [v.shape for v in values] == shapes
    return sum(
      jnp.vdot(c, v) for c, v in zip(cotangents, values, strict=True)
    ), values

  gradients, values = jax.jit(
    jax.grad(scalar, argnums=(0, 1, 2, 3), has_aux=True)
  )(_params(), *example)
  return values, gradients


@functools.cache
def _expected(length):
  key, example = jax.random.PRNGKey(3), _example(length)
  inits = [
    jax.jit(toys.transformed(f).init)(key, *example) for f in (_ours, _haikus)
  ]
  chex.assert_trees_all_equal(*inits)
  return _values_and_gradients(_haikus, length)


@pytest.mark.parametrize(
  'ours, length, cpu_rows, platform',
  [
    *[(_FIRST, 1, 1024, 'cpu'), (_SECOND, 1, 1024, 'cpu')],
    *[(_ours, 11, 1024, 'cpu'), (_ours, 11, 1, 'cpu')],
    *[(_FIRST, 11, 6, 'cpu'), (_SECOND, 11, 6, 'cpu')],
    *[(_ours, 2, 1024, 'cuda'), (_ours, 4, 1024, 'cuda')],
    *[(_FIRST, 11, 1024, 'cuda'), (_SECOND, 11, 1024, 'cuda')],
  ],
)
def test_values_and_all_gradients_equal_haikus(
  ours, length, cpu_rows, platform, monkeypatch
):
  monkeypatch.setattr(lstm, '_CPU_ROWS', cpu_rows)
  monkeypatch.setattr(lstm, '_UNROLL', 4)  # Compiles faster.
  with toys.as_on(platform):
    found = _values_and_gradients(ours, length)
  expected = _expected(length)
  if ours is _SECOND:  # Only the first of several LSTMs has gradients.
    found, expected = found[:1], expected[:1]
  assert all(np.any(x != 0) for x in jax.tree.leaves(found))
  chex.assert_trees_all_close(found, expected, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize(
  'length, scale, held',
  [(12, 1.0, 0), (12, 1e4, 0), (12, 1.0, 0.4), (1, 1.0, 0.4)],
)
def test_values_equal_float64(length, scale, held):
  example = _example(length, scale=scale)
  params = _params()
  hold = np.random.default_rng(0).random((length, 3)) < held
  apply = jax.jit(toys.transformed(_ours).apply)
  actual = apply(params, *example, *([hold] if held else []))
  with np.errstate(over='ignore'):
    expected = reference.lstm_unroll(
      params['lstm/linear']['w'], params['lstm/linear']['b'], *example, hold
    )
  for x, y in zip(actual, expected, strict=True):
    assert x.shape == y.shape
    np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


def test_gradients_stay_finite_where_gates_saturate():
  example = _example(50, scale=1e4)

  def scalar(params, *example):
    return jnp.sum(toys.transformed(_ours).apply(params, *example)[0])

  gradients = jax.jit(jax.grad(scalar, argnums=(0, 1, 2, 3)))(
    _params(), *example
  )
  for leaf in jax.tree.leaves(gradients):
    assert np.all(np.isfinite(leaf))
