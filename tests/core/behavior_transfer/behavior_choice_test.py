"""Tests learned priorities: values, extremes, and a bandit."""

import numpy as np
import pytest

from bt_acme.core.behavior_transfer import behavior_choice as priorities
from tests.reference import behavior_choice as reference

_SETTINGS = {'temperature': 0.1, 'floor': 0.1}


def _scores(episodes, num_behaviors, window):
  scores = priorities.new_scores(num_behaviors, window)
  for behavior, score in episodes:
    scores = priorities.update(scores, behavior, score)
  return scores


@pytest.mark.parametrize('num', [0, 1, 2, 5, 30, 200])
@pytest.mark.parametrize('window', [1, 3, 16])
@pytest.mark.parametrize('weights', [(1, 1, 1, 1), (2, 0, 0.5, 1)])
@pytest.mark.parametrize('spread', [1.0, 0.0])
def test_probabilities_match_the_reference(num, window, weights, spread):
  rng = np.random.default_rng(num)
  episodes = [
    (int(rng.integers(3)), 0.1 + spread * float(rng.normal()))
    for _ in range(num)
  ]
  scores = _scores(episodes, 4, window)
  assert scores.values.shape == (4, window)
  assert scores.values.dtype == np.float64
  assert scores.counts.sum() == num
  normalized = reference.normalized_scores(episodes, 4, window)
  actual = priorities.normalized_scores(scores)
  assert actual.shape == (4,)
  np.testing.assert_allclose(actual, normalized, rtol=1e-10, atol=1e-10)
  actual = priorities.probabilities(scores, np.float64(weights), **_SETTINGS)
  expected = reference.probabilities(normalized, weights, **_SETTINGS)
  assert actual.shape == (4,) and actual.dtype == np.float64
  np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-15)
  np.testing.assert_allclose(actual.sum(), 1, rtol=1e-12)
  if not spread:
    np.testing.assert_allclose(actual, weights / np.sum(weights), rtol=1e-9)


@pytest.mark.parametrize('scale', [1e-300, 1e-3, 1.0, 1e300])
@pytest.mark.parametrize('temperature', [1e-38, 0.2, 1e9])
@pytest.mark.parametrize('floor', [0.0, 0.1, 1.0])
def test_extremes_give_probabilities(scale, temperature, floor):
  episodes = [(0, -scale), (1, scale), (2, scale / 2)] * 40
  scores, weights = _scores(episodes, 4, 16), np.float64([1e-300, 1, 1, 0])
  settings = {'temperature': temperature, 'floor': floor}
  actual = priorities.probabilities(scores, weights, **settings)
  assert np.isfinite(actual).all() and (actual >= 0).all()
  np.testing.assert_allclose(actual.sum(), 1, rtol=1e-9)
  assert actual[3] == 0
  if temperature < 1 and floor < 1:
    assert actual[1] == actual.max()  # The best one that can fly.
  if floor == 1:
    np.testing.assert_allclose(actual, [0, 0.5, 0.5, 0], atol=1e-12)


def test_a_rarely_paying_behavior_is_found_and_a_switch_followed():
  rng = np.random.default_rng(0)
  for _ in range(5):
    scores = priorities.new_scores(5, 64)
    for paying in (3, 1):
      for _ in range(400):
        p = priorities.probabilities(scores, np.ones(5), **_SETTINGS)
        behavior = int(rng.choice(5, p=p))
        pays = behavior == paying and rng.random() < 0.1
        scores = priorities.update(scores, behavior, float(pays))
      p = priorities.probabilities(scores, np.ones(5), **_SETTINGS)
      assert p[paying] > 0.5
