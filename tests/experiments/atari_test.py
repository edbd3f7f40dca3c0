"""Tests of both Atari commands, without launched runs."""

import collections
import json
from unittest import mock

import numpy as np
import pytest
from PIL import Image

from bt_acme import assembly
from bt_acme import config as config_lib
from bt_acme.config import names
from bt_acme.config import run as run_config
from bt_acme.environments import atari
from experiments.atari import explore, learn, montezuma, room_map
from tests.agents import fakes

_LEFT, _RIGHT = 4, 3


def _write_run(folder, game):
  """Writes the configuration file of a launched run."""
  folder.mkdir(parents=True, exist_ok=True)
  identity = {'agent': 'R2D2Config', 'run': {'env': game}, 'config': {}}
  (folder / 'config.json').write_text(json.dumps(identity))


@pytest.fixture(name='learned')
def write_learned(tmp_path):
  _write_run(tmp_path, 'boxing')
  evaluations = [(100, 2.0), (100, 4.0), (200, 13.1), (200, 11.1), (300, 5)]
  episodes = [(10 * i, i) for i in range(1, 40)]
  for label, rows in (('evaluator', evaluations), ('actor', episodes)):
    path = tmp_path / 'logs' / label / 'logs.csv'
    path.parent.mkdir(parents=True)
    lines = ['actor_steps,episode_return', *(f'{x},{y}' for x, y in rows)]
    path.write_text('\n'.join([*lines, '']))
  return tmp_path


def _learn(folder, game='boxing', **settings):
  return learn.TrainConfig(game=game, workdir=str(folder), **settings)


def _draw(folder, **settings):
  return learn.run(_learn(folder, draw_only=True, **settings), learn.show)


def test_scores_are_compared_with_a_random_agent_and_a_human(learned, capsys):
  assert _draw(learned) == 0
  output = capsys.readouterr().out
  assert 'boxing, 390 actor steps, 1,560 frames' in output
  rows = [' '.join(line.split()) for line in output.splitlines()]
  assert {
    *('random 0.1 0.0%', 'human 12.1 100.0%'),
    *('last evaluation 300 5.0 40.8%', 'best evaluation 200 12.1 100.0%'),
  } < set(rows)
  assert any(row.startswith('Wall time: 0:00:') for row in rows)
  assert (learned / 'curve.png').read_bytes().startswith(b'\x89PNG')
  # A run without training episodes can be drawn as well.
  (learned / 'logs' / 'actor' / 'logs.csv').unlink()
  assert _draw(learned) == 0


def test_learning_launches_r2d2_and_returns_its_exit_code(learned):
  launched = []

  def launch(script, flags):
    launched.append((script, flags))
    return len(launched) % 2 and 130

  config = _learn(learned, max_actor_steps=77, seed=3)
  for code in (130, 0):
    assert learn.run(config, learn.show, launch) == code
    assert (learned / 'curve.png').exists() == (code == 0)
  script, flags = launched[0]
  assert script == 'run_r2d2.py'
  assert set(flags) == {
    *('--preset=atari_small', '--env=boxing', '--max_actor_steps=77'),
    *('--seed=3', f'--workdir={learned}'),
  }


def test_workdirs_that_cannot_be_drawn_are_rejected(tmp_path):
  exploring = explore.ExploreConfig(workdir=str(tmp_path), draw_only=True)
  for show, config in (
    (learn.show, _learn(tmp_path / 'none', draw_only=True)),
    (explore.show, exploring),
  ):
    with pytest.raises(ValueError, match='does not contain a run'):
      learn.run(config, show)
  _write_run(tmp_path, 'pong')
  with pytest.raises(ValueError, match="a run on 'pong', not on game='boxing'"):
    _draw(tmp_path)
  with pytest.raises(ValueError, match='contains no evaluation yet'):
    _draw(tmp_path, game='pong')


@pytest.mark.parametrize(
  'config_class, settings, message',
  [
    (learn.TrainConfig, {'game': 'pnog'}, "[Dd]id you mean 'pong'"),
    (learn.TrainConfig, {'game': 'Chain-9'}, 'has no human score'),
    (learn.TrainConfig, {'max_actor_steps': 0}, 'must be positive'),
    (explore.ExploreConfig, {'game': 'montezuma'}, 'is unknown'),
    (explore.ExploreConfig, {'game': 'pong'}, 'has no map of its rooms'),
    (explore.ExploreConfig, {'episode_steps': 0}, 'must be positive'),
  ],
)
def test_invalid_settings_are_rejected(config_class, settings, message):
  with pytest.raises(ValueError, match=message):
    config_class(**settings)


def _act(environment, action, times):
  """Takes an action several times; returns the player's x and y."""
  for _ in range(times):
    environment.step(action)
  return tuple(map(int, environment.ram()[[42, 43]]))


def test_the_position_in_memory_matches_the_screen():
  environment = atari.Atari('montezuma_revenge', seed=0)
  environment.reset()
  assert montezuma.position(environment.ram()) == (1, 4, 10)
  x, y = _act(environment, 0, 4)
  for action, sign in ((_RIGHT, 1), (_LEFT, -1)):
    before = x
    x, same_y = _act(environment, action, 2)
    assert same_y == y and sign * (x - before) > 4
    # The columns of the screen that show the player's red clothes.
    red = (environment.render_rgb()[75:92] == (200, 72, 72)).all(axis=-1)
    assert abs(np.flatnonzero(red.any(axis=0)).mean() - (x + 3)) < 2
  # The player steps off the platform and falls.
  assert _act(environment, _RIGHT, 12)[1] < y


def test_every_room_of_level_1_has_a_unique_place():
  places = montezuma.pyramid()
  assert sorted(places) == list(range(24))
  assert len(set(places.values())) == 24
  middle = [places[room] for room in (1, 5, 11, 19)]  # Of each floor.
  assert middle == [(floor, 4) for floor in range(4)]


def test_positions_stay_in_their_room():
  for value in (0, 255):
    ram = np.full(128, value, np.uint8)
    room, row, column = montezuma.position(ram)
    assert room == value
    assert 0 <= row < montezuma.ROWS and 0 <= column < montezuma.COLUMNS


def test_every_policy_takes_the_same_number_of_actions():
  rng, player = np.random.default_rng(0), mock.Mock()
  player.select_actions = lambda step: rng.integers(18, size=1)
  visits = montezuma.play(
    player, env=montezuma.GAME, num_games=1, actor_steps=1_400, seed=0
  )
  assert visits.counts.total() == 1_400
  # The first step of a game is not the outcome of an action.
  observed = [call.args[0] for call in player.observe.mock_calls]
  assert sum(not step.is_first for step in observed) == 1_400
  # Long enough for a random player to lose twice.
  assert len(visits.visited) > 2
  assert 10 < visits.positions_per_game < visits.positions
  assert set().union(*visits.visited) == set(visits.counts)
  assert visits.rooms == 1 and visits.positions > 20
  assert visits.pictures[1].shape == (152, 160, 3)


def test_counts_are_drawn_over_the_images_of_their_rooms():
  # Room 99 is not part of the level.
  counts = {(1, 0, 0): 5, (23, 18, 19): 7, (99, 0, 0): 1}
  visits = montezuma.Visits(
    counts=collections.Counter(counts),
    pictures={23: np.full((152, 160, 3), 250, np.uint8)},
  )
  assert room_map.floors_shown({1: (), 23: (), 99: ()}) == 4
  grid = room_map.counts(visits, 4)
  picture = room_map.background(visits.pictures, 4)
  assert picture.shape == tuple(8 * n for n in grid.shape) + (3,)
  assert grid.sum() == 12 and grid[0, 4 * 20] == 5 and grid[-1, -1] == 7
  assert (picture[-12:-6, -12:-6] == 250).all()
  assert (picture[10, 4 * 160 + 10] == 70).all()  # Room 1 has no image.


def _export_untrained(script, flags):
  """Replaces the launched run: exports an untrained behavior."""
  assert script == 'run_ngu.py'
  assert '--num_evaluators=0' in flags and '--preset=atari_small' in flags
  (workdir,) = (x[10:] for x in flags if x.startswith('--workdir='))
  settings = {'torso_size': 8, 'lstm_size': 8, 'head_size': 8}
  agent = assembly.Agent(
    names.build(config_lib.NGUConfig, {**settings, 'memory_capacity': 50}),
    assembly.spec_by_name(montezuma.GAME),
  )
  run = run_config.RunConfig(workdir=workdir)
  fakes.export_agent(run.behavior_folder, agent)
  return 0


@pytest.mark.usefixtures('shared_functions')
def test_exploring_prints_a_table_and_draws_the_rooms(tmp_path, capsys):
  _write_run(tmp_path, montezuma.GAME)
  config = explore.ExploreConfig(
    workdir=str(tmp_path), episodes=2, episode_steps=30
  )
  assert learn.run(config, explore.show, _export_untrained) == 0
  rows = [' '.join(r.split()) for r in capsys.readouterr().out.splitlines()]
  trained = 'behavior, with the epsilons of its training'
  for label in ('random', 'behavior', trained):
    assert any(row.startswith(f'{label} 2 60 1 ') for row in rows)
  with Image.open(tmp_path / 'rooms.png') as image:
    width, height = image.size
  assert width > 2 * height
