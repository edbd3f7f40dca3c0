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


def _slow_mean(runs):
  scores = _slow_task_scores(runs)
  return sum(scores) / len(scores)


def _slow_capped_mean(runs):
  scores = [100.0 if x > 100 else x for x in _slow_task_scores(runs)]
  return sum(scores) / len(scores)


def _slow_percentile(runs, percent):
  """Interpolates linearly at rank percent / 100 (n - 1)."""
  scores = sorted(_slow_task_scores(runs))
  rank = percent / 100 * (len(scores) - 1)
  below = int(rank)
  above = min(below + 1, len(scores) - 1)
  return scores[below] + (rank - below) * (scores[above] - scores[below])


def _slow_optimality_gap(runs):
  values = [min(float(score), 100.0) for seed in runs for score in seed]
  return 100 - sum(values) / len(values)


def _slow_profile(runs, tau):
  return sum(score > tau for seed in runs for score in seed) / runs.size


_SLOW = {
  intervals.mean: _slow_mean,
  intervals.median: lambda runs: _slow_percentile(runs, 50),
  intervals.capped_mean: _slow_capped_mean,
  intervals.optimality_gap: _slow_optimality_gap,
  intervals.percentiles: lambda runs: [
    _slow_percentile(runs, p) for p in (5, 10, 20, 40, 50)
  ],
}
_ALL = [*_SLOW, intervals.interquartile_mean]


def _mean(runs):
  return np.mean(runs, axis=(-2, -1))


@pytest.mark.parametrize('statistic', _SLOW, ids=lambda f: f.__name__)
@pytest.mark.parametrize('shape', [(1, 1), (1, 6), (5, 1), (3, 4), (2, 57)])
def test_statistics_match_loops(statistic, shape):
  runs = np.random.default_rng(0).normal(60, 100, size=(2, 3, *shape))
  runs[0, 0] = np.round(runs[0, 0], -2)  # Ties, and scores of exactly 100.
  actual = statistic(runs)
  expected = [[_SLOW[statistic](sample) for sample in row] for row in runs]
  assert actual.shape == np.shape(expected)
  np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-10)


@pytest.mark.parametrize('shape', [(1, 1), (3, 4)])
def test_performance_profile_matches_a_loop(shape):
  runs = np.round(np.random.default_rng(0).normal(size=(2, *shape)), 1)
  taus = [-9.0, *runs[0].ravel(), 0.0, 9.0]  # A run at tau is not above it.
  actual = intervals.performance_profile(runs, taus)
  expected = [[_slow_profile(sample, tau) for tau in taus] for sample in runs]
  assert actual.shape == (2, len(taus))
  np.testing.assert_allclose(actual, expected, rtol=1e-12)
  assert actual[0, 0] == 1 and actual[0, -1] == 0


def test_optimality_gap_and_capped_mean_agree_for_one_seed():
  runs = _runs(1, 9)
  gap = intervals.optimality_gap(runs, target=7.0)
  assert gap == pytest.approx(7 - intervals.capped_mean(runs, cap=7.0))
  assert intervals.optimality_gap(runs, target=runs.min()) == 0


@pytest.mark.parametrize('statistic', _ALL, ids=lambda f: f.__name__)
def test_over_points_applies_the_statistic_to_each_point(statistic):
  curves = np.random.default_rng(0).normal(60, 100, size=(2, 3, 4, 5))
  actual = intervals.over_points(statistic)(curves)
  expected = np.stack([statistic(curves[..., i]) for i in range(5)], axis=1)
  assert actual.shape == expected.shape
  np.testing.assert_allclose(actual, expected, rtol=1e-12)


@pytest.mark.parametrize(
  'shape', [*((1, n) for n in range(1, 26)), (2, 2), (5, 1), (5, 6)]
)
def test_interquartile_mean_matches_a_loop(shape):
  runs = _runs(7, *shape)
  actual = intervals.interquartile_mean(runs)
  assert actual.shape == (7,)
  expected = [_slow_interquartile_mean(sample) for sample in runs]
  np.testing.assert_allclose(actual, expected, rtol=1e-12)


def test_interquartile_mean_ignores_a_quarter_at_each_end():
  runs = np.float64([[-1e9, 1.0, 2.0, 1e9]])
  assert intervals.interquartile_mean(runs) == 1.5
  # A quarter of three runs is less than one run.
  assert intervals.interquartile_mean(runs[:, 1:]) == pytest.approx(1e9 / 3 + 1)


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


def test_probability_of_improvement_of_both_orders_sums_to_1():
  x_runs, y_runs = _runs(5, 3, seed=1), _runs(4, 3, seed=3)
  forth = intervals.probability_of_improvement(x_runs, y_runs)
  back = intervals.probability_of_improvement(y_runs, x_runs)
  assert forth + back == pytest.approx(1)
  assert forth != back
  assert intervals.probability_of_improvement(x_runs, x_runs) == 0.5
  assert intervals.probability_of_improvement(x_runs + 1e9, y_runs) == 1
  # Only the order matters, not the scale.
  scaled = intervals.probability_of_improvement(
    np.exp(x_runs / 100), np.exp(y_runs / 100)
  )
  assert scaled == forth


def test_probability_of_improvement_of_normal_runs_matches_closed_form():
  rng = np.random.default_rng(0)
  x_runs = rng.normal(1.0, 1.0, size=(2_000, 1))
  y_runs = rng.normal(0.0, 1.0, size=(2_000, 1))
  actual = intervals.probability_of_improvement(x_runs, y_runs)
  assert actual == pytest.approx(0.7602, abs=0.02)  # Phi(1 / sqrt(2))


def test_seeds_are_drawn_within_each_task_independently():
  """Compares with the interval of all possible resamples."""
  runs = np.float64([[0.0, 10.0], [1.0, 13.0]])  # [seeds, tasks]
  pairs = list(itertools.product(range(2), repeat=2))
  values = [
    np.mean([*(runs[i, 0] for i in first), *(runs[i, 1] for i in second)])
    for first, second in itertools.product(pairs, pairs)
  ]
  assert len(values) == 16
  for confidence in (0.6, 0.8, 0.92):
    tail = (1 - confidence) / 2
    low, high = np.quantile(values, [tail, 1 - tail], method='inverted_cdf')
    actual = intervals.bootstrap(
      _mean, runs, confidence=confidence, num_resamples=20_001
    )
    assert actual == (np.mean(runs), low, high)


def test_tasks_are_drawn_with_all_their_seeds_and_alike_for_both():
  """Compares with the interval of all possible resamples."""
  x_runs = np.float64([[0.0, 10.0, 5.0], [2.0, 13.0, 5.0]])  # [seeds, tasks]
  y_runs = np.float64([[1.0, 9.0, 7.0]])
  draws = [list(draw) for draw in itertools.product(range(3), repeat=3)]
  differences = [_mean(x_runs[:, d]) - _mean(y_runs[:, d]) for d in draws]
  for confidence in (0.3, 0.6, 0.9):
    tail = (1 - confidence) / 2
    low, high = np.quantile(
      differences, [tail, 1 - tail], method='inverted_cdf'
    )
    actual = intervals.bootstrap(
      lambda x, y: _mean(x) - _mean(y),
      x_runs,
      y_runs,
      strata=intervals.TASKS,
      confidence=confidence,
      num_resamples=20_001,
    )
    assert actual == pytest.approx((np.mean(x_runs) - 17 / 3, low, high))


def test_no_interval_for_one_seed_or_one_task():
  one, more = _runs(1, 4), _runs(3, 4)
  for samples in ((one,), (one, more), (more, one)):
    actual = intervals.bootstrap(
      lambda *runs: sum(_mean(x) for x in runs), *samples
    )
    assert actual.value == sum(_mean(x) for x in samples)
    assert np.isnan([actual.low, actual.high]).all()
  over_tasks = intervals.bootstrap(_mean, one, strata=intervals.TASKS)
  assert over_tasks.low < over_tasks.value < over_tasks.high
  actual = intervals.bootstrap(_mean, more[:, :1], strata=intervals.TASKS)
  assert actual.value == _mean(more[:, :1]) and np.isnan(actual.low)
  assert intervals.bootstrap(_mean, more[:, :1]).low < actual.value
  profile = intervals.bootstrap(intervals.percentiles, one)
  np.testing.assert_array_equal(profile.value, intervals.percentiles(one))
  assert profile.low.shape == (5,) and np.isnan(profile.low).all()


@pytest.mark.parametrize('strata', [intervals.SEEDS, intervals.TASKS])
def test_intervals_of_curves_equal_those_of_their_points(strata, monkeypatch):
  curves = np.random.default_rng(0).normal(60, 100, size=(3, 4, 5))
  settings = {'strata': strata, 'num_resamples': 101}
  statistic = intervals.over_points(intervals.interquartile_mean)
  actual = intervals.bootstrap(statistic, curves, **settings)
  for i in range(5):
    expected = intervals.bootstrap(
      intervals.interquartile_mean, curves[..., i], **settings
    )
    assert [x[i] for x in actual] == pytest.approx(list(expected))
  # The result is the same in several chunks.
  monkeypatch.setattr(intervals, '_CHUNK', 7 * curves.size)
  chunked = intervals.bootstrap(statistic, curves, **settings)
  np.testing.assert_allclose(chunked, actual, rtol=1e-12)


def test_tasks_are_not_drawn():
  runs = np.broadcast_to(np.float64([1.0, 50.0, 1_000.0]), (4, 3))
  mean = np.mean(runs)
  assert intervals.bootstrap(_mean, runs) == (mean, mean, mean)


def test_interval_of_a_mean_matches_closed_form():
  runs = np.random.default_rng(0).normal(3.0, 2.0, size=(400, 5))
  mean = np.mean(runs)
  standard_error = np.sqrt(np.mean(np.var(runs, axis=0)) / runs.size)
  actual = intervals.bootstrap(_mean, runs, num_resamples=5_000)
  assert actual.value == pytest.approx(mean)
  assert (actual.low - mean) / standard_error == pytest.approx(-1.96, abs=0.1)
  assert (actual.high - mean) / standard_error == pytest.approx(1.96, abs=0.1)


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
    runs,
    runs,
    confidence=0.8,
    num_resamples=20_001,
  )
  assert actual == (0.5, low, high)


def test_the_seed_affects_only_the_interval_and_confidence_widens_it():
  runs = _runs(5, 4)
  bootstrap = functools.partial(
    intervals.bootstrap, intervals.interquartile_mean, runs
  )
  first, again, other = (bootstrap(seed=seed) for seed in (3, 3, 4))
  assert first == again
  assert first != other
  assert first.value == other.value == intervals.interquartile_mean(runs)
  assert first.low < first.value < first.high
  narrow, wide = (bootstrap(confidence=share) for share in (0.5, 0.95))
  assert wide.low < narrow.low < narrow.high < wide.high


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
  for statistic in _ALL:
    with pytest.raises(ValueError, match=message):
      statistic(runs)
  with pytest.raises(ValueError, match=message):
    intervals.performance_profile(runs, [0.0])
  with pytest.raises(ValueError, match=message):
    intervals.probability_of_improvement(np.zeros((2, 2)), runs)
  with pytest.raises(ValueError, match=message):
    intervals.bootstrap(intervals.interquartile_mean, runs)


def test_invalid_arguments():
  runs = _runs(3, 2)
  with pytest.raises(ValueError, match='x_runs has 2 tasks, but y_runs has 1'):
    intervals.probability_of_improvement(runs, runs[:, :1])
  with pytest.raises(ValueError, match=r'shape \(1, 1, 3, 2\) cannot'):
    intervals.bootstrap(_mean, runs[None, None])
  with pytest.raises(ValueError, match="strata='games' must be 'seeds' or"):
    intervals.bootstrap(_mean, runs, strata='games')
  with pytest.raises(ValueError, match=r'numbers of tasks, \[2, 3\]'):
    intervals.bootstrap(
      lambda x, y: _mean(x) - _mean(y), runs, _runs(3, 3), strata='tasks'
    )
  for confidence in (0.0, 1.0, 95):
    with pytest.raises(ValueError, match=f'confidence={confidence}'):
      intervals.bootstrap(_mean, runs, confidence=confidence)
  with pytest.raises(ValueError, match='num_resamples=0'):
    intervals.bootstrap(_mean, runs, num_resamples=0)
