"""Statistics over seeds and worlds against hand-computed cases."""

import math

import numpy as np
import pytest

from experiments.paper import estimates

# Two seeds of four worlds, whose means are 10, 50, 200 and -40.
_RUNS = np.array([[0.0, 40.0, 150.0, -40.0], [20.0, 60.0, 250.0, -40.0]])


@pytest.mark.parametrize(
  'metric, expected',
  [
    ('median', 30),
    ('mean', 55),
    ('capped_mean', (10 + 50 + 100 - 40) / 4),
    # Of the sorted -40, -40, 0, 20, 40, 60, 150, 250 the middle four.
    ('iqm', (0 + 20 + 40 + 60) / 4),
    ('p50', 30),
    # A fifth of three steps between four worlds: 0.6 of the way to the second.
    ('p20', -40 + 0.6 * 50),
    ('num_above_random', 3),
    ('num_above_human', 1),
  ],
)
def test_metrics_of_a_small_case(metric, expected):
  statistic = estimates.METRICS[metric]
  assert statistic(_RUNS) == pytest.approx(expected)
  batched = statistic(np.stack([_RUNS, _RUNS + 0]))
  assert batched.shape == (2,)
  np.testing.assert_allclose(batched, expected)


def test_every_metric_has_a_title():
  assert set(estimates.METRICS) < set(estimates.TITLES)


def test_one_seed_has_no_interval():
  estimate = estimates.estimate(estimates.mean, _RUNS[:1])
  assert estimate.value == pytest.approx(37.5)
  assert math.isnan(estimate.low) and math.isnan(estimate.high)


def test_an_interval_holds_what_other_seeds_might_have_given():
  estimate = estimates.estimate(estimates.mean, _RUNS)
  assert 55 - 18 <= estimate.low < 55 < estimate.high <= 55 + 18
  assert (estimate.low, estimate.high) != (55, 55)


def test_equal_seeds_have_an_interval_without_width():
  runs = np.repeat(_RUNS[:1], 3, axis=0)
  estimate = estimates.estimate(estimates.median, runs)
  assert estimate.low == estimate.value == estimate.high
