"""Tests `Atari`: seeds and ends of episodes.

The tests of `AtariVector` compare its preprocessing, such as the maximum of two
frames, with that of ale-py.
"""

import numpy as np
import pytest
from ale_py import roms

from bt_acme import environments
from bt_acme.environments import atari


def _is_same(one, other):
  return one[:3] == other[:3] and (one.observation == other.observation).all()


def test_all_57_games_have_a_rom():
  assert len(set(atari.ATARI_57)) == 57
  for game in atari.ATARI_57:
    assert roms.get_rom_path(game).is_file(), game


@pytest.mark.parametrize(
  'name', ['pixels', 'stack', 'action_repeat', 'max_noops', 'max_frames']
)
def test_options_that_are_too_small_are_refused(name):
  with pytest.raises(ValueError, match=f'^{name}=-1 must '):
    environments.make('pong', seed=0, **{name: -1})


@pytest.mark.parametrize('options, high', [({}, 30), ({'max_noops': 2}, 2)])
def test_number_of_no_ops_varies_from_1_to_max_noops(options, high):
  environment = atari.Atari('pong', seed=0, **options)
  counts = set()
  for _ in range(40):
    environment.reset()
    counts.add(environment._ale.getEpisodeFrameNumber())
  assert counts <= set(range(1, high + 1))
  assert len(counts) > high / 2


def test_seed_and_actions_determine_the_episodes():
  actions = np.random.default_rng(0).integers(18, size=150)
  games = [
    atari.Atari('space_invaders', seed=seed, max_frames=200)
    for seed in (3, 3, 4)
  ]
  one, same, other = ([x.reset(), *map(x.step, actions)] for x in games)
  assert sum(timestep.first() for timestep in one) > 2
  assert all(map(_is_same, one, same))
  assert not all(map(_is_same, one, other))
