"""Tests statistics against slow loops, closed forms and known properties."""

import functools
import itertools

import numpy as np
import pytest

from bt_acme.evaluation import intervals


def _runs(*shape, seed=0):
  """Returns runs with ties and very different scales per task."""
  rng = np.random.default_rng(seed)
  return np.round(rng.normal(size=shape), 1) * 10.0 ** np.arange(shape[-1])


def _slow_interquartile_mean(runs):
  values = sorted(float(score) for seed in runs for score in seed)
  for _ in range(int(len(values) / 4)):
    values.remove(min(values))
    values.remove(max(values))
  return sum(values) / len(values)


def _slow_probability_of_improvement(x_runs, y_runs):
  probabilities = []
  for x_task, y_task in zip(x_runs.T, y_runs.T, strict=True):
    wins = [
      1.0 if x > y else 0.5 if x == y else 0.0 for x in x_task for y in y_task
    ]
    probabilities.append(sum(wins) / len(wins))
  return sum(probabilities) / len(probabilities)


def _slow_task_scores(runs):
  return [sum(map(float, task)) / len(task) for task in runs.T]


_TAUS = (-9.0, 0.0, 100.0)  # A run at tau is not above it.
_SLOW = {
  intervals.mean: lambda runs: np.mean(_slow_task_scores(runs)),
  intervals.median: lambda runs: np.median(_slow_task_scores(runs)),
  intervals.capped_mean: lambda runs: np.mean(
    [100.0 if x > 100 else x for x in _slow_task_scores(runs)]
  ),
  functools.partial(intervals.percentile, percent=20): lambda runs: (
    np.percentile(_slow_task_scores(runs), 20, method='linear')
  ),
  intervals.interquartile_mean: _slow_interquartile_mean,
  functools.partial(intervals.num_above, level=100.0): lambda runs: sum(
    x > 100 for x in _slow_task_scores(runs)
  ),
  functools.partial(intervals.performance_profile, taus=_TAUS): lambda runs: [
    sum(score > tau for seed in runs for score in seed) / runs.size
    for tau in _TAUS
  ],
}


def _mean(runs):
  return np.mean(runs, axis=(-2, -1))


@pytest.mark.parametrize('statistic', _SLOW)
def test_statistics_match_loops(statistic):
  sizes = [(1, n) for n in range(1, 10)]
  for shape in (*sizes, (5, 1), (3, 4), (5, 6), (2, 57)):
    runs = np.random.default_rng(0).normal(60, 100, size=(2, 3, *shape))
    runs[0, 0] = np.round(runs[0, 0], -2)  # Ties, and scores of exactly 100.
    actual = statistic(runs)
    expected = [[_SLOW[statistic](sample) for sample in row] for row in runs]
    assert actual.shape == np.shape(expected)
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize('seeds', [(1, 1), (3, 3), (2, 5)])
def test_probability_of_improvement_matches_a_loop(seeds):
  x_runs = _runs(7, seeds[0], 4, seed=1)
  y_runs = _runs(7, seeds[1], 4, seed=2)
  x_runs[:, 0, 0] = y_runs[:, 0, 0]  # A tie.
  actual = intervals.probability_of_improvement(x_runs, y_runs)
  assert actual.shape == (7,)
  expected = [
    _slow_probability_of_improvement(x, y)
    for x, y in zip(x_runs, y_runs, strict=True)
  ]
  np.testing.assert_allclose(actual, expected, rtol=1e-12)


@pytest.mark.parametrize('confidence', [0.6, 0.8, 0.92])
def test_seeds_are_drawn_within_each_task_independently(confidence):
  """Compares with the interval of all possible resamples."""
  runs = np.float64([[0.0, 10.0], [1.0, 13.0]])  # [seeds, tasks]
  pairs = list(itertools.product(range(2), repeat=2))
  values = [
    np.mean([*(runs[i, 0] for i in first), *(runs[i, 1] for i in second)])
    for first, second in itertools.product(pairs, pairs)
  ]
  assert len(values) == 16
  tail = (1 - confidence) / 2
  low, high = np.quantile(values, [tail, 1 - tail], method='inverted_cdf')
  actual = intervals.bootstrap(
    _mean, runs, confidence=confidence, num_resamples=20_001
  )
  assert actual == (np.mean(runs), low, high)


def test_two_samples_are_drawn_independently():
  """Compares with all resamples of two seeds each."""
  runs = np.float64([[0.0], [1.0]])
  draws = itertools.product(range(2), repeat=4)
  values = [
    np.mean([(x > y) + (x == y) / 2 for x in (a, b) for y in (c, d)])
    for a, b, c, d in draws
  ]
  low, high = np.quantile(values, [0.1, 0.9], method='inverted_cdf')
  assert 0 < low < 0.5 < high < 1
  actual = intervals.bootstrap(
    intervals.probability_of_improvement,
    *(runs, runs),
    confidence=0.8,
    num_resamples=20_001,
  )
  assert actual == (0.5, low, high)


def test_no_interval_for_one_seed():
  one, more = _runs(1, 4), _runs(3, 4)
  for samples in ((one,), (one, more), (more, one)):
    actual = intervals.bootstrap(
      lambda *runs: sum(_mean(x) for x in runs), *samples
    )
    assert actual.value == sum(_mean(x) for x in samples)
    assert np.isnan([actual.low, actual.high]).all()
  assert intervals.bootstrap(_mean, more[:, :1]).low < _mean(more[:, :1])
  profile = functools.partial(intervals.performance_profile, taus=_TAUS)
  estimate = intervals.bootstrap(profile, one)
  np.testing.assert_array_equal(estimate.value, profile(one))
  assert estimate.low.shape == (3,) and np.isnan(estimate.low).all()


def test_intervals_of_curves_equal_those_of_their_points(monkeypatch):
  curves = np.random.default_rng(0).normal(60, 100, size=(3, 4, 5))
  statistic = intervals.over_points(intervals.interquartile_mean)
  actual = intervals.bootstrap(statistic, curves, num_resamples=101)
  for i in range(5):
    expected = intervals.bootstrap(
      intervals.interquartile_mean, curves[..., i], num_resamples=101
    )
    assert [x[i] for x in actual] == pytest.approx(list(expected))
  # The result is the same in several chunks.
  monkeypatch.setattr(intervals, '_CHUNK', 7 * curves.size)
  chunked = intervals.bootstrap(statistic, curves, num_resamples=101)
  np.testing.assert_allclose(chunked, actual, rtol=1e-12)


def test_the_seed_affects_only_the_interval():
  first, again, other = (
    intervals.bootstrap(intervals.interquartile_mean, _runs(5, 4), seed=seed)
    for seed in (3, 3, 4)
  )
  assert first == again != other
  assert first.value == other.value == intervals.interquartile_mean(_runs(5, 4))


@pytest.mark.parametrize(
  'runs, message',
  [
    ([1.0, 2.0], r'shape \(2,\)\. Pass \[seeds, tasks\]'),
    (np.zeros((0, 3)), r'shape \(0, 3\)\. Pass'),
    ([[1.0, np.nan]], 'NaN or infinity'),
    ([[1.0, -np.inf]], 'NaN or infinity'),
  ],
)
def test_invalid_runs(runs, message):
  improvement = functools.partial(
    intervals.probability_of_improvement, np.zeros((2, 2))
  )
  bootstrap = functools.partial(intervals.bootstrap, _mean)
  for statistic in (*_SLOW, improvement, bootstrap):
    with pytest.raises(ValueError, match=message):
      statistic(runs)


def test_invalid_arguments():
  runs = _runs(3, 2)
  with pytest.raises(ValueError, match='x_runs has 2 tasks, but y_runs has 1'):
    intervals.probability_of_improvement(runs, runs[:, :1])
  for confidence in (0.0, 1.0, 95):
    with pytest.raises(ValueError, match=f'confidence={confidence}'):
      intervals.bootstrap(_mean, runs, confidence=confidence)
  with pytest.raises(ValueError, match='num_resamples=0'):
    intervals.bootstrap(_mean, runs, num_resamples=0)
