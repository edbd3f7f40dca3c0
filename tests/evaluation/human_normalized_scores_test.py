"""Tests human-normalized scores against the numbers printed in the paper."""

import math

import numpy as np
import pytest

from bt_acme.environments import atari
from bt_acme.evaluation import human_normalized_scores as scores
from experiments.paper import published

_SUITES = {'full': scores.FULL, 'hard': scores.HARD_EXPLORATION}


def _paper_scores(tables, arm='r2d2'):
  return {
    number.env: float(number.value)
    for table in tables
    for number in published.numbers(table)
    if number.env and number.arm == arm
  }


def _value(summary, metric):
  if metric.startswith('p'):
    return summary.percentiles[int(metric[1:])]
  return getattr(summary, metric)


def test_summaries_of_r2d2_match_the_paper():
  """The tests of the paper's tables compare all agents."""
  paper = _paper_scores(('table6', 'table7', 'table8'))
  metrics = set()
  for table in ('table4', 'table5'):
    for number in published.numbers(table):
      if number.arm == 'r2d2':
        summary = scores.summarize(paper, _SUITES[number.suite])
        value = _value(summary, number.metric)
        assert f'{value:.{number.decimals}f}' == number.value, number
        assert summary.num_games == len(_SUITES[number.suite])
        metrics.add(number.metric)
  assert len(metrics) == 8 and {'mean', 'median', 'capped_mean'} < metrics


def test_lists_of_games():
  assert scores.FULL == atari.ATARI_57
  assert set(scores.HARD_EXPLORATION) == {
    *('gravitar', 'montezuma_revenge', 'pitfall'),
    *('private_eye', 'solaris', 'venture'),
  }
  assert len(scores.ATARI_26) == 26
  assert len(scores.ABLATION) == 12
  for games in (scores.ATARI_26, scores.ABLATION):
    assert set(games) < set(scores.FULL)
  # Kaiser et al. excluded games that random exploration does not solve.
  assert set(scores.ATARI_26) & set(scores.HARD_EXPLORATION) == {'private_eye'}


@pytest.mark.parametrize(
  'game, random, human',
  [
    ('pong', -20.7, 14.6),
    ('skiing', -17098.1, -4336.9),
    ('video_pinball', 0.0, 17667.9),
  ],
)
def test_random_is_0_and_human_is_100(game, random, human):
  assert scores.human_normalized(game, random) == 0
  assert scores.human_normalized(game, human) == 100
  middle = scores.human_normalized(game, (random + human) / 2)
  assert middle == pytest.approx(50)


def test_arrays_are_normalized_elementwise():
  runs = np.float32([[14.6, -20.7], [0.0, 21.0]])
  actual = scores.human_normalized('pong', runs)
  expected = [
    [100 * (float(run) + 20.7) / (14.6 + 20.7) for run in row] for row in runs
  ]
  assert actual.shape == (2, 2)
  assert actual.dtype == np.float64
  np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-12)


def test_counts_exclude_games_at_random_and_human_level():
  at_levels = {'pong': -20.7, 'boxing': 12.1, 'freeway': 10.0, 'hero': 4e4}
  below = {'pitfall': -500.0}
  summary = scores.summarize({**at_levels, **below}, [*at_levels, *below])
  assert summary.num_above_random == 3
  assert summary.num_above_human == 1
  assert summary.num_games == 5


@pytest.mark.parametrize('name', ['montezumas_revenge', 'MontezumaRevenge'])
def test_the_error_suggests_the_nearest_game(name):
  message = f"'{name}' has no human score: did you mean 'montezuma_revenge'"
  with pytest.raises(ValueError, match=message):
    scores.human_normalized(name, 0.0)
  with pytest.raises(ValueError, match=message):
    scores.summarize({'pong': 0.0}, [name])
  with pytest.raises(ValueError, match=message):
    scores.summarize({'pong': 0.0, name: 0.0}, ['pong'])


def test_a_modified_reward_has_no_human_score():
  with pytest.raises(ValueError, match="'hero:miners_easy' has no human score"):
    scores.human_normalized('hero:miners_easy', 0.0)


def test_missing_games_are_named():
  paper = _paper_scores(['table9'])
  del paper['pong'], paper['tennis']
  with pytest.raises(ValueError, match='lacks 2 of 12 games: pong, tennis'):
    scores.summarize(paper, scores.ABLATION)
  with pytest.raises(ValueError, match='games is empty'):
    scores.summarize(paper, [])


@pytest.mark.parametrize('score', [math.nan, math.inf])
def test_scores_that_are_not_finite(score):
  with pytest.raises(ValueError, match=r"scores\['pong'\]=(nan|inf) is not"):
    scores.summarize({'pong': score}, ['pong'])
