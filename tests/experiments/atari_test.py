"""Tests of the commands that show runs on Atari."""

import collections
import json
from unittest import mock

import numpy as np
import pytest
from PIL import Image

from bt_acme import assembly
from bt_acme import config as config_lib
from bt_acme.config import names
from bt_acme.environments import atari
from experiments.atari import montezuma, room_map, rooms, scores
from tests.agents import fakes

_LEFT, _RIGHT = 4, 3


def _write_run(folder, game):
  """Writes the configuration file of a launched run."""
  folder.mkdir(parents=True, exist_ok=True)
  identity = {'agent': 'R2D2Config', 'run': {'env': game}, 'config': {}}
  (folder / 'config.json').write_text(json.dumps(identity))


def test_scores_are_compared_with_a_random_agent_and_a_human(tmp_path, capsys):
  _write_run(tmp_path, 'boxing:pixels=42')
  evaluations = [(100, 2.0), (100, 4.0), (200, 13.1), (200, 11.1), (300, 5)]
  episodes = [(10 * i, i) for i in range(1, 40)]
  for label, rows in (('evaluator', evaluations), ('actor', episodes)):
    path = tmp_path / 'logs' / label / 'logs.csv'
    path.parent.mkdir(parents=True)
    lines = ['actor_steps,episode_return', *(f'{x},{y}' for x, y in rows)]
    path.write_text('\n'.join([*lines, '']))
  config = scores.ScoresConfig(workdir=str(tmp_path))
  assert scores.run(config) == 0
  output = capsys.readouterr().out
  assert 'boxing, 390 actor steps, 1,560 frames' in output
  rows = [' '.join(line.split()) for line in output.splitlines()]
  assert {
    *('random 0.1 0.0%', 'human 12.1 100.0%'),
    *('last evaluation 300 5.0 40.8%', 'best evaluation 200 12.1 100.0%'),
  } < set(rows)
  assert (tmp_path / 'curve.png').read_bytes().startswith(b'\x89PNG')
  path.unlink()  # A run without training episodes can be drawn as well.
  assert scores.run(config) == 0


def test_workdirs_that_cannot_be_drawn_are_rejected(tmp_path):
  scoring = scores.ScoresConfig(workdir=str(tmp_path))
  mapping = rooms.RoomsConfig(workdir=str(tmp_path))
  for run, config in ((scores.run, scoring), (rooms.run, mapping)):
    with pytest.raises(ValueError, match='does not contain a run'):
      run(config)
  _write_run(tmp_path, 'pong')
  with pytest.raises(ValueError, match='contains no evaluation yet'):
    scores.run(scoring)
  with pytest.raises(ValueError, match='pong has no map of its rooms'):
    rooms.run(mapping)
  _write_run(tmp_path, 'Chain-9')
  with pytest.raises(ValueError, match="'Chain-9' has no human score"):
    scores.run(scoring)
  with pytest.raises(ValueError, match='must be positive'):
    rooms.RoomsConfig(episode_steps=0)


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
  spec = assembly.spec_by_name(montezuma.GAME)
  visits = montezuma.play(player, spec, num_games=1, actor_steps=1_400, seed=0)
  assert visits.counts.total() == 1_400
  # The first step of a game is not the outcome of an action.
  observed = [call.args[0] for call in player.observe.mock_calls]
  assert sum(not step.is_first for step in observed) == 1_400
  # The number of times that the random player lost.
  assert len(visits.visited) == sum(step.is_last[0] for step in observed) > 1
  assert 10 < visits.positions_per_game < visits.positions
  assert set().union(*visits.visited) <= set(visits.counts)
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


@pytest.mark.usefixtures('shared_functions')
def test_rooms_are_counted_in_a_table_and_drawn(tmp_path, capsys):
  _write_run(tmp_path, montezuma.GAME)
  settings = {'torso_size': 8, 'lstm_size': 8, 'head_size': 8}
  agent = assembly.Agent(
    names.build(config_lib.NGUConfig, {**settings, 'memory_capacity': 50}),
    assembly.spec_by_name(montezuma.GAME, num_stacked=1),
  )
  fakes.export_agent(str(tmp_path / 'behavior'), agent)
  assert rooms.run(rooms.RoomsConfig(str(tmp_path), 2, 30)) == 0
  rows = [' '.join(r.split()) for r in capsys.readouterr().out.splitlines()]
  trained = 'behavior, with the epsilons of its training'
  for label in ('random', 'behavior', trained):
    assert any(row.startswith(f'{label} 2 60 1 ') for row in rows)
  with Image.open(tmp_path / 'rooms.png') as image:
    width, height = image.size
  assert width > 2 * height
