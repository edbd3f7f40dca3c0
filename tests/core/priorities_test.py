"""Tests the priorities of sequences against the reference."""

import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme import config as config_lib
from bt_acme.core import priorities, returns, td_errors
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
@pytest.mark.parametrize('real_steps', [1, 3, 7])
@pytest.mark.parametrize('max_weight', [0.0, 0.9, 1.0])
def test_matches_reference(real_steps, max_weight, xp):
  rng = np.random.default_rng(real_steps)
  values = rng.normal(size=(7, 4)).astype(np.float32)
  weights = np.zeros((7, 4), np.float32)
  for b in range(4):  # Errors that count are in random order.
    weights[rng.permutation(7)[:real_steps], b] = 1
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


@pytest.mark.parametrize('padding', [0.0, 1e30, np.inf, np.nan])
@pytest.mark.parametrize(
  'weights, expected', [((1, 1, 0), 0.9 * 3 + 0.1 * 2), ((0, 0, 0), 0)]
)
def test_masked_errors_change_nothing(padding, weights, expected):
  errors = errors_of([[1], [-3], [padding]], np.array(weights)[:, None])
  actual = priorities.sequence_priorities(errors, max_weight=0.9)
  np.testing.assert_allclose(actual, [expected], rtol=1e-6)


@pytest.mark.parametrize(
  'wrong', ['q_online', 'q_target', 'reward', 'choice', 'trained']
)
def test_mismatched_shapes_are_errors(wrong):
  arrays = {
    'q_online': np.zeros([4, 2, 3]),
    'q_target': np.zeros([4, 2, 3]),
    **dict.fromkeys(returns.Transitions._fields, np.zeros([3, 2])),
    'trained': np.zeros([3, 2]),
  }
  arrays[wrong] = arrays[wrong][:, :1]
  with pytest.raises(AssertionError):
    td_errors.td_errors(
      arrays.pop('q_online'),
      arrays.pop('q_target'),
      trained=arrays.pop('trained'),
      transitions=returns.Transitions(**arrays),
      recursion=returns.returns_on_host,
      learner=config_lib.LearnerConfig(),
      num_actions=3,
    )


@pytest.mark.parametrize('value', [np.nan, np.inf])
def test_priorities_that_are_not_finite_are_errors(value):
  priorities.check_finite(np.ones(3))
  with pytest.raises(ValueError, match='the learner has diverged. Lower'):
    priorities.check_finite(np.array([1, value, 1]))
