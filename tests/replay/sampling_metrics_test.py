"""Tests the metrics of the effect of prioritization."""

import numpy as np
import pytest

from bt_acme.replay import sampling_metrics


def visits(metrics, keys):
  ones = np.ones(len(keys))
  return metrics.compute(np.uint64(keys), ones, ones)['first_visit_share']


def test_only_the_first_visit_of_a_key_counts():
  metrics = sampling_metrics.SamplingMetrics(100)
  assert visits(metrics, [5, 2**64 - 1, 7, 8]) == 1
  assert visits(metrics, [5, 9, 9, 7]) == 0.25
  assert visits(metrics, [5, 9, 9, 2**64 - 1]) == 0


def test_keys_that_may_still_be_in_the_replay_are_remembered():
  size = 10
  metrics = sampling_metrics.SamplingMetrics(size)
  rng = np.random.default_rng(0)
  newest, seen = size, set()
  for _ in range(300):
    newest += int(rng.integers(3))
    keys = rng.integers(newest - size, newest, 4).tolist()
    assert visits(metrics, keys) == len(set(keys) - seen) / 4
    seen |= set(keys)
  assert newest > 5 * size
  assert len(metrics._visited) <= 2 * size


@pytest.mark.parametrize('exponent', [0.0, 0.6, 0.9])
def test_estimates_the_ratio_of_means(exponent):
  rng = np.random.default_rng(0)
  true = 1e-3 * rng.lognormal(0, 1, 500)
  probabilities = true**exponent / np.sum(true**exponent)
  index = rng.choice(len(true), 200_000, p=probabilities)
  expected = true[index].mean() / true.mean()
  actual = sampling_metrics.priority_over_uniform(
    true[index], probabilities[index]
  )
  np.testing.assert_allclose(actual, expected, rtol=0.02)


@pytest.mark.parametrize('scale', [1e-300, 1.0, 1e300])
def test_extremes(scale):
  ratio = sampling_metrics.priority_over_uniform
  even = np.full(4, 0.25)
  assert ratio(np.zeros(4), even) == 1
  np.testing.assert_allclose(ratio(np.full(4, scale), even), 1)
  uneven = np.array([1.0, 1e-300, 1e-9, 1.0])
  assert np.isfinite(ratio(scale * np.arange(1.0, 5.0), uneven))
