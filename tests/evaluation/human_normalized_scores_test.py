"""Tests human-normalized scores; those of the paper's tables compare more."""

import numpy as np
import pytest

from bt_acme.environments import atari
from bt_acme.evaluation import human_normalized_scores as scores


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
  runs = np.float64([[random, human], [(random + human) / 2, 2 * human]])
  actual = scores.human_normalized(game, runs)
  assert actual.dtype == np.float64
  np.testing.assert_array_equal(actual[0], [0, 100])
  beyond = 100 * (2 * human - random) / (human - random)
  np.testing.assert_allclose(actual[1], [50, beyond], rtol=1e-12)


@pytest.mark.parametrize('name', ['MontezumaRevenge', 'hero:miners_easy'])
def test_other_games_have_no_human_score(name):
  with pytest.raises(ValueError, match=f'{name!r} has no human score. Choose'):
    scores.human_normalized(name, 0.0)
