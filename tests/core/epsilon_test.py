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


def test_ladder_has_the_minimum_and_maximum_of_the_paper():
  ladder = epsilon_lib.ladder(256, base=0.4, alpha=7.0)
  np.testing.assert_allclose(ladder[[0, -1]], [0.4, 6.55e-4], rtol=1e-3)
  assert np.all(np.diff(ladder) < 0)


@pytest.mark.parametrize('value', [0.0, 0.5, 1.0])
def test_probabilities_are_accepted(value):
  epsilon_lib.check(value)


@pytest.mark.parametrize('value', [-1e-9, 1.001, float('nan')])
def test_other_numbers_are_refused(value):
  with pytest.raises(ValueError, match=rf'^epsilon={value} must lie in'):
    epsilon_lib.check(value)
