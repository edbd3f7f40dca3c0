"""Tests the labels under which a transition is trained."""

import jax.numpy as jnp
import numpy as np
import pytest

from bt_acme.core import types
from bt_acme.core.behavior_transfer import relabelling

_A = 3
# Own action 1; extra action of behavior 0; flight of behavior 1.
_ACTION = [1, 2, 0]
_SOURCE = [types.OWN, types.EXTRA, types.FLIGHT]


def _labels(choice, duplicate_flights, behavior_labels='both'):
  def column(values, dtype):
    return jnp.asarray(np.asarray(values, dtype)[:, None])

  result = relabelling.labels(
    column(choice, np.int32),
    column(_ACTION, np.int32),
    column(_SOURCE, np.uint8),
    num_actions=_A,
    behavior_labels=behavior_labels,
    duplicate_flights=duplicate_flights,
  )
  assert result[1].dtype == jnp.float32
  return tuple(np.asarray(x)[:, 0].tolist() for x in result)


@pytest.mark.parametrize(
  'choice, duplicate_flights, expected_choice, expected_duplicated',
  [
    # With extra actions, a behavior's transitions train both labels.
    ([1, _A, _A + 1], True, [1, _A, _A + 1], [0, 1, 1]),
    # Flights train only their primitive action.
    ([1, _A, _A + 1], False, [1, _A, 0], [0, 1, 0]),
    # Without extra actions, the label of a flight is its primitive action.
    ([1, 2, 0], True, [1, 2, 0], [0, 0, 0]),
    ([1, 2, 0], False, [1, 2, 0], [0, 0, 0]),
  ],
)
def test_labels(
  choice, duplicate_flights, expected_choice, expected_duplicated
):
  labels = _labels(choice, duplicate_flights)
  assert labels == (expected_choice, expected_duplicated)


@pytest.mark.parametrize(
  'behavior_labels, duplicate_flights, expected',
  [
    ('extra', True, [1, _A, _A + 1]),
    ('extra', False, [1, _A, 0]),
    ('primitive', True, _ACTION),
    ('primitive', False, _ACTION),
  ],
)
def test_one_label_alone_duplicates_nothing(
  behavior_labels, duplicate_flights, expected
):
  labels = _labels([1, _A, _A + 1], duplicate_flights, behavior_labels)
  assert labels == (expected, [0, 0, 0])
