"""Tests of the search for best episodes and of the file of scores."""

import numpy as np
import pytest

from bt_acme import environments
from bt_acme.environments import minigrid, naming
from experiments.paper import normalized_scores

_SCORES = normalized_scores.read()


def _solved(env, seed=0):
  """Returns an environment at its start, and the best return and actions."""
  environment = environments.make(env, seed=seed)
  environment.reset()
  bonuses = naming.parse(env, minigrid.MODIFIERS)
  return environment, *normalized_scores.solve(environment, bonuses)


def test_the_shortest_path_matches_a_hand_computed_case():
  # Five cells east, a turn, five cells south; an episode has 256 steps.
  _, value, actions = _solved('MiniGrid-Empty-8x8-v0')
  assert len(actions) == 11
  assert value == pytest.approx(1 - 0.9 * 11 / 256)


@pytest.mark.parametrize(
  'env, seed',
  [
    ('MiniGrid-FourRooms-v0:fixed', 0),
    ('MiniGrid-FourRooms-v0:fixed=1:new_cell=-0.15', 0),
    ('MiniGrid-FourRooms-v0:fixed=24:new_cell=-0.1', 7),
    ('MiniGrid-LavaCrossingS9N1-v0:fixed=2', 7),
    ('MiniGrid-MultiRoom-N2-S4-v0', 0),
    ('MiniGrid-MultiRoom-N2-S4-v0:door=0.3', 0),
    ('MiniGrid-MultiRoom-N2-S4-v0:door=0.3', 7),
    ('MiniGrid-MultiRoom-N2-S4-v0:door=-0.3', 0),
    ('MiniGrid-MultiRoom-N2-S4-v0:door=-0.3', 7),
  ],
)
def test_the_environment_returns_the_value_of_the_search(env, seed):
  environment, value, actions = _solved(env, seed)
  steps = [environment.step(action) for action in actions]
  assert steps[-1].last()
  assert sum(step.reward for step in steps) == pytest.approx(value, abs=1e-5)
  if ':fixed' in env:
    assert value == pytest.approx(_SCORES[env].best, abs=1e-6)


def test_doing_nothing_is_best_if_cells_cost_too_much():
  _, *solution = _solved('MiniGrid-FourRooms-v0:fixed:new_cell=-0.5')
  assert solution == [0.0, ()]


def test_no_random_walk_exceeds_the_bound():
  env = 'MiniGrid-FourRooms-v0:fixed=1:new_cell=0.15'
  best = normalized_scores.measure(env, episodes=1).best
  # Each of 100 steps enters a new cell, and the last one reaches the goal.
  assert best == pytest.approx(100 * 0.15 + 0.1)
  assert best == pytest.approx(_SCORES[env].best)
  for seed in range(3):
    score = normalized_scores.measure(env, episodes=3, seed=seed)
    assert score.random < best


@pytest.mark.parametrize(
  'env, message',
  [
    ('FourRooms-v0:no_goal', 'reach no goal. Choose another'),
    ('DoorKey-6x6-v0', 'by hand'),
    ('Dynamic-Obstacles-6x6-v0', 'by hand'),
  ],
)
def test_an_environment_that_cannot_be_searched_is_rejected(env, message):
  with pytest.raises(ValueError, match=message):
    _solved(f'MiniGrid-{env}')


def test_the_file_is_consistent():
  assert len(_SCORES) >= 13
  for env, score in _SCORES.items():
    environments.validate(env)
    assert score.episodes == normalized_scores.EPISODES
    assert score.random < score.best
    bonuses = naming.parse(env, minigrid.MODIFIERS)
    is_bound = bonuses.get('new_cell', 0) > 0
    assert score.kind == ('bound' if is_bound else 'search')


def test_scores_survive_a_round_trip(tmp_path, monkeypatch, capsys):
  monkeypatch.setattr(normalized_scores, 'PATH', tmp_path / 'scores.csv')
  normalized_scores.write({})
  monkeypatch.setattr(normalized_scores, 'EPISODES', 2)
  env = 'MiniGrid-Empty-8x8-v0'
  normalized_scores.main([env])
  (score,) = normalized_scores.read().values()
  assert score.best == pytest.approx(0.961328)
  assert env in capsys.readouterr().out


def test_random_is_0_and_the_best_is_100():
  env = 'MiniGrid-FourRooms-v0:fixed=1'
  score = _SCORES[env]
  values = [score.random, score.best, (score.random + score.best) / 2]
  normalized = normalized_scores.normalize(env, np.float32(values))
  assert normalized.dtype == np.float64
  np.testing.assert_allclose(normalized, [0, 100, 50], atol=1e-4)


def test_an_unknown_environment_gets_advice():
  message = "did you mean 'MiniGrid-FourRooms-v0:fixed.*_scores MiniGrid-Fo"
  with pytest.raises(ValueError, match=message):
    normalized_scores.normalize('MiniGrid-FourRooms-v0:fixed=2', 0.0)
  with pytest.raises(ValueError, match="'hero:miners_easy' has no reference"):
    normalized_scores.normalize('hero:miners_easy', 0.0)
  with pytest.raises(SystemExit, match="'pong' is not an environment of MiniG"):
    normalized_scores.main(['pong'])
