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
  wins = [
    (x > y) + (x == y) / 2
    for x_task, y_task in zip(x_runs.T, y_runs.T, strict=True)
    for x in x_task
    for y in y_task
  ]
  return sum(wins) / len(wins)


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
  intervals.probability_of_improvement: _slow_probability_of_improvement,
}
_SAMPLES = {intervals.probability_of_improvement: 2}  # The others have one.
_mean = functools.partial(np.mean, axis=(-2, -1))


@pytest.mark.parametrize('statistic', _SLOW)
def test_statistics_match_loops(statistic):
  rng = np.random.default_rng(0)
  sizes = [(1, n) for n in range(1, 10)]
  for seeds, tasks in (*sizes, (5, 1), (3, 4), (5, 6), (2, 57)):
    samples = [
      rng.normal(60, 100, size=(2, 3, seeds + more, tasks))
      for more in range(_SAMPLES.get(statistic, 1))
    ]
    for runs in samples:  # Ties, and scores of exactly 100.
      runs[0, 0] = np.round(runs[0, 0], -2)
    actual = statistic(*samples)
    expected = [
      [_SLOW[statistic](*each) for each in zip(*row, strict=True)]
      for row in zip(*samples, strict=True)
    ]
    assert actual.shape == np.shape(expected)
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize(
  'statistic, samples, confidence',
  [
    *((_mean, [[[0, 10], [1, 13]]], x) for x in (0.6, 0.8, 0.92)),
    (intervals.probability_of_improvement, [[[0], [1]]] * 2, 0.8),
  ],
)
def test_seeds_are_drawn_independently(statistic, samples, confidence):
  """Compares with the interval of all resamples of two seeds per task."""
  samples = np.float64(samples)  # [samples, seeds, tasks]
  scores = np.moveaxis(samples, 1, -1).reshape(-1, 2)  # [..., seeds]
  values = []
  for draws in itertools.product(range(2), repeat=scores.size):
    drawn = np.take_along_axis(scores, np.reshape(draws, scores.shape), 1)
    values.append(statistic(*drawn.reshape(len(samples), -1, 2).swapaxes(1, 2)))
  tail = (1 - confidence) / 2
  low, high = np.quantile(values, [tail, 1 - tail], method='inverted_cdf')
  assert low < np.mean(values) < high
  actual = intervals.bootstrap(
    statistic, *samples, confidence=confidence, num_resamples=20_001
  )
  assert actual == (statistic(*samples), low, high)


def test_no_interval_for_one_seed():
  def statistic(*samples):
    return sum(intervals.performance_profile(x, _TAUS) for x in samples)

  one, more = _runs(1, 4), _runs(3, 4)
  for samples in ((one,), (one, more), (more, one)):
    actual = intervals.bootstrap(statistic, *samples)
    np.testing.assert_array_equal(actual.value, statistic(*samples))
    assert actual.low.shape == (3,)
    assert np.isnan([actual.low, actual.high]).all()
  assert intervals.bootstrap(_mean, more[:, :1]).low < _mean(more[:, :1])


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
  bootstrap = functools.partial(intervals.bootstrap, _mean)
  for statistic in (*_SLOW, bootstrap):
    valid = [np.zeros((2, 2))] * (_SAMPLES.get(statistic, 1) - 1)
    with pytest.raises(ValueError, match=message):
      statistic(*valid, runs)


def test_invalid_arguments():
  runs = _runs(3, 2)
  with pytest.raises(ValueError, match='x_runs has 2 tasks, but y_runs has 1'):
    intervals.probability_of_improvement(runs, runs[:, :1])
  for confidence in (0.0, 1.0, 95):
    with pytest.raises(ValueError, match=f'confidence={confidence}'):
      intervals.bootstrap(_mean, runs, confidence=confidence)
  with pytest.raises(ValueError, match='num_resamples=0'):
    intervals.bootstrap(_mean, runs, num_resamples=0)
