"""Tests the epsilon of every environment."""

import numpy as np
import pytest

from bt_acme.core import epsilon as epsilon_lib
from tests.reference import acting as reference


@pytest.mark.parametrize('num_environments', [1, 2, 16, 256])
def test_ladder_matches_reference(num_environments):
  actual = epsilon_lib.ladder(num_environments, base=0.4, alpha=7.0)
  assert actual.shape == (num_environments,)
  assert actual.dtype == np.float32
  expected = [
    reference.epsilon_of(i, num_environments, base=0.4, alpha=7.0)
    for i in range(num_environments)
  ]
  np.testing.assert_allclose(actual, expected, rtol=1e-6)
  if num_environments == 256:  # The values of the paper.
    np.testing.assert_allclose(actual[[0, -1]], [0.4, 6.55e-4], rtol=1e-3)


@pytest.mark.parametrize('value', [-1e-9, 1.001, float('nan')])
def test_only_probabilities_are_accepted(value):
  for probability in (0.0, 1.0):
    epsilon_lib.check(probability)
  message = rf'^epsilon={value} must (lie in|be finite)'
  with pytest.raises(ValueError, match=message):
    epsilon_lib.check(value)
