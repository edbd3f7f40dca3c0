"""Priorities of sequences against their reference."""

import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme.core import priorities
from tests.reference import priorities as reference


@pytest.mark.parametrize('real_steps', [1, 3, 7])
@pytest.mark.parametrize('max_weight', [0.0, 0.9, 1.0])
def test_matches_reference(real_steps, max_weight):
  rng = np.random.default_rng(real_steps)
  errors = rng.normal(size=(7, 4)).astype(np.float32)
  weights = np.zeros((7, 4), np.float32)
  for b in range(4):  # Errors that count come in any order.
    weights[rng.permutation(7)[:real_steps], b] = 1
  actual = priorities.sequence_priorities(
    jnp.asarray(errors), jnp.asarray(weights), max_weight=max_weight
  )
  assert actual.shape == (4,)
  expected = [
    reference.sequence_priority(
      errors[weights[:, b] > 0, b], max_weight=max_weight
    )
    for b in range(4)
  ]
  np.testing.assert_allclose(actual, expected, rtol=1e-6)


@pytest.mark.parametrize('padding', [0.0, 1e30, np.inf, np.nan])
def test_what_does_not_count_changes_nothing(padding):
  errors = np.array([[1.0], [-3.0], [padding]], np.float32)
  weights = np.array([[1.0], [1.0], [0.0]], np.float32)
  actual = priorities.sequence_priorities(
    jnp.asarray(errors), jnp.asarray(weights), max_weight=0.9
  )
  np.testing.assert_allclose(actual, [0.9 * 3 + 0.1 * 2], rtol=1e-6)


def test_nothing_real_is_zero_and_not_nan():
  zeros = jnp.zeros([3, 2])
  actual = priorities.sequence_priorities(zeros + 1.0, zeros, max_weight=0.9)
  np.testing.assert_array_equal(actual, [0.0, 0.0])


def test_shapes_that_differ_are_refused():
  with pytest.raises(AssertionError):
    priorities.sequence_priorities(
      jnp.zeros([3, 2]), jnp.zeros([3, 1]), max_weight=0.9
    )
