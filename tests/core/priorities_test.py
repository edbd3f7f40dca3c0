"""Tests the priorities of sequences against the reference."""

import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme.core import priorities, td_errors
from tests.reference import priorities as reference


def errors_of(values, weights, xp=jnp):
  """Returns TD errors [N, B]; the last rows are the errors of duplicates."""
  values, weights = (np.asarray(x, np.float32) for x in (values, weights))
  half = len(values) // 2
  return td_errors.TDErrors(
    None,
    *(xp.asarray(x) for x in (values[:-half], values[-half:])),
    *(xp.asarray(x) for x in (weights[:-half], weights[-half:])),
  )


@pytest.mark.parametrize('xp', [jnp, np])
@pytest.mark.parametrize('real_steps', [0, 1, 3, 7])
@pytest.mark.parametrize('max_weight', [0.0, 0.9, 1.0])
def test_matches_reference(real_steps, max_weight, xp):
  rng = np.random.default_rng(real_steps)
  values = rng.normal(size=(7, 4)).astype(np.float32)
  weights = np.zeros((7, 4), np.float32)
  for b in range(4):  # Errors that count are in random order.
    weights[rng.permutation(7)[:real_steps], b] = 1
  values[weights == 0] = np.resize([1e30, np.inf, np.nan], 28 - 4 * real_steps)
  actual = priorities.sequence_priorities(
    errors_of(values, weights, xp), max_weight=max_weight
  )
  assert actual.shape == (4,) and isinstance(actual, type(xp.zeros(1)))
  expected = [
    reference.sequence_priority(
      values[weights[:, b] > 0, b], max_weight=max_weight
    )
    for b in range(4)
  ]
  np.testing.assert_allclose(actual, expected, rtol=1e-6)
