"""Tests h and its inverse: against float64, rlax and each other."""

import jax.numpy as jnp
import numpy as np
import pytest
import rlax

from bt_acme.core import value_rescaling
from tests.reference import value_rescaling as reference

_EPSILON = 1e-3
_MAGNITUDES = np.logspace(-8, 6, 500)
_BOTH_SIGNS = np.float32(np.concatenate([-_MAGNITUDES, [0.0], _MAGNITUDES]))


def test_reference_has_the_published_values():
  np.testing.assert_allclose(
    reference.rescale([1, 100, 1000], _EPSILON),
    [0.415214, 9.149876, 31.638584],
    atol=5e-7,
  )
  y = np.linspace(-50, 50, 101)
  np.testing.assert_allclose(
    reference.invert(y, _EPSILON),
    reference.invert_closed_form(y, _EPSILON),
    rtol=1e-9,
    atol=1e-9,
  )


@pytest.mark.parametrize('epsilon', [1e-3, 1e-2, 1e-6])
def test_rescale_matches_reference(epsilon):
  actual = value_rescaling.rescale(jnp.asarray(_BOTH_SIGNS), epsilon)
  assert actual.shape == _BOTH_SIGNS.shape
  assert actual.dtype == jnp.float32
  expected = reference.rescale(_BOTH_SIGNS, epsilon)
  # Near zero, the reference itself subtracts two numbers close to 1.
  np.testing.assert_allclose(actual, expected, rtol=5e-7, atol=1e-15)


@pytest.mark.parametrize('epsilon', [1e-3, 1e-2, 1e-6])
def test_invert_matches_reference(epsilon):
  y = np.float32(reference.rescale(_BOTH_SIGNS, epsilon))
  actual = value_rescaling.invert(jnp.asarray(y), epsilon)
  assert actual.dtype == jnp.float32
  expected = reference.invert(y, epsilon)
  np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=1e-15)


def test_agrees_with_rlax():
  x = jnp.linspace(-300, 300, 601)
  pair = rlax.SIGNED_HYPERBOLIC_PAIR
  ours = value_rescaling.rescale(x, _EPSILON)
  np.testing.assert_allclose(ours, pair.apply(x), rtol=1e-5, atol=1e-6)
  np.testing.assert_allclose(
    value_rescaling.invert(ours, _EPSILON),
    pair.apply_inv(ours),
    rtol=1e-3,
    atol=1e-3,
  )


def test_epsilon_zero_is_no_rescaling():
  x = jnp.asarray(_BOTH_SIGNS)
  np.testing.assert_array_equal(value_rescaling.rescale(x, 0.0), _BOTH_SIGNS)
  np.testing.assert_array_equal(value_rescaling.invert(x, 0.0), _BOTH_SIGNS)
  np.testing.assert_array_equal(reference.rescale(x, 0.0), _BOTH_SIGNS)
