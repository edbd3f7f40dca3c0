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


@pytest.mark.parametrize(
  'behavior_labels, choice, duplicate_flights, expected, duplicated',
  [
    # With extra actions, a behavior's transitions train both labels.
    ('both', [1, _A, _A + 1], True, [1, _A, _A + 1], [0, 1, 1]),
    # Flights train only their primitive action.
    ('both', [1, _A, _A + 1], False, [1, _A, 0], [0, 1, 0]),
    # Without extra actions, the label of a flight is its primitive action.
    ('both', [1, 2, 0], True, [1, 2, 0], [0, 0, 0]),
    ('both', [1, 2, 0], False, [1, 2, 0], [0, 0, 0]),
    # One label alone duplicates nothing.
    ('extra', [1, _A, _A + 1], True, [1, _A, _A + 1], [0, 0, 0]),
    ('extra', [1, _A, _A + 1], False, [1, _A, 0], [0, 0, 0]),
    ('primitive', [1, _A, _A + 1], True, _ACTION, [0, 0, 0]),
    ('primitive', [1, _A, _A + 1], False, _ACTION, [0, 0, 0]),
  ],
)
def test_labels(
  behavior_labels, choice, duplicate_flights, expected, duplicated
):
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
  assert result[2].dtype == jnp.float32
  columns = [x[:, 0].tolist() for x in result]
  assert columns == [expected, _ACTION, duplicated]
