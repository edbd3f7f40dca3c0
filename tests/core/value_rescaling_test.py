"""Tests h and its inverse against float64."""

import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme.core import value_rescaling
from tests.reference import value_rescaling as reference

_MAGNITUDES = np.logspace(-8, 6, 500)
_BOTH_SIGNS = np.float32(np.concatenate([-_MAGNITUDES, [0.0], _MAGNITUDES]))


def test_reference_has_the_published_values():
  np.testing.assert_allclose(
    reference.rescale([1, 100, 1000], 1e-3),
    [0.415214, 9.149876, 31.638584],
    atol=5e-7,
  )


@pytest.mark.parametrize('epsilon', [1e-3, 1e-2, 1e-6, 0.0])
def test_h_and_its_inverse_match_reference(epsilon):
  actual = value_rescaling.rescale(jnp.asarray(_BOTH_SIGNS), epsilon)
  assert actual.shape == _BOTH_SIGNS.shape
  assert actual.dtype == jnp.float32
  expected = reference.rescale(_BOTH_SIGNS, epsilon)
  # Near zero, the reference itself subtracts two numbers close to 1.
  np.testing.assert_allclose(actual, expected, rtol=5e-7, atol=1e-15)
  y = np.float32(expected)
  actual = value_rescaling.invert(jnp.asarray(y), epsilon)
  assert actual.dtype == jnp.float32
  expected = reference.invert(y, epsilon)
  np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=1e-15)
