"""Tests of statistics over seeds and environments with hand-computed cases."""

import numpy as np
import pytest

from experiments.paper import metrics

# Two seeds in four environments, whose means are 10, 50, 200 and -40.
_RUNS = np.array([[0.0, 40.0, 150.0, -40.0], [20.0, 60.0, 250.0, -40.0]])


@pytest.mark.parametrize(
  'metric, expected',
  [
    ('median', 30),
    ('mean', 55),
    ('capped_mean', (10 + 50 + 100 - 40) / 4),
    # The middle four of -40, -40, 0, 20, 40, 60, 150, 250.
    ('iqm', (0 + 20 + 40 + 60) / 4),
    ('p50', 30),
    # A fifth of the three gaps between four values: 0.6 of the first gap.
    ('p20', -40 + 0.6 * 50),
    ('num_above_random', 3),
    ('num_above_human', 1),
  ],
)
def test_metrics_of_a_small_case(metric, expected):
  statistic = metrics.METRICS[metric].statistic
  assert statistic(_RUNS) == pytest.approx(expected)
  batched = statistic(np.stack([_RUNS, _RUNS + 0]))
  assert batched.shape == (2,)
  np.testing.assert_allclose(batched, expected)
