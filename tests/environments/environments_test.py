"""Tests finding environments by name, and suggestions for wrong names."""

import dm_env
import numpy as np
import pytest

from bt_acme import environments
from bt_acme.environments import atari, chain, minigrid, registry
from tests import python


@pytest.mark.parametrize(
  'name, shape, num_actions',
  [
    ('pong', (84, 84, 4), 18),
    ('ms_pacman', (84, 84, 4), 18),
    ('hero:miners_hard', (84, 84, 4), 18),
    ('MiniGrid-DoorKey-8x8-v0', (7, 7, 3), 7),
    ('MiniGrid-MultiRoom-N4-S5-v0:fixed=3', (7, 7, 3), 7),
    ('MiniGrid-MultiRoom-N2-S4-v0:no_goal', (7, 7, 3), 7),
    ('MiniGrid-FourRooms-v0:fixed=1:no_goal', (7, 7, 3), 7),
    ('MiniGrid-FourRooms-v0:fixed=1:new_cell=-0.1', (7, 7, 3), 7),
    ('MiniGrid-DoorKey-5x5-v0:door=0.3', (7, 7, 3), 7),
    ('Chain-49', (7, 7, 3), 2),
    ('Chain-50:random_actions', (8, 8, 3), 2),
    ('Recall-6', (7, 7, 3), 2),
  ],
)
def test_environments_match_their_specs(name, shape, num_actions):
  environments.validate(name)
  environment = environments.make(name, seed=1)
  assert isinstance(environment, dm_env.Environment)
  assert environment.observation_spec().shape == shape
  assert environment.action_spec().num_values == num_actions
  timestep = environment.reset()
  assert timestep.first()
  for action in range(num_actions):
    environment.observation_spec().validate(timestep.observation)
    timestep = environment.step(action)
    environment.reward_spec().validate(timestep.reward)
    environment.discount_spec().validate(timestep.discount)


@pytest.mark.parametrize(
  'name, num_stacked, channels',
  [('pong', 0, 4), ('pong', 1, 1), ('hero:miners_easy', 2, 2)]
  + [('MiniGrid-Empty-5x5-v0', n, 3) for n in (0, 1)],
)
def test_stacks(name, num_stacked, channels):
  environment = environments.make(name, seed=0, num_stacked=num_stacked)
  assert environment.observation_spec().shape[-1] == channels
  assert environment.reset().observation.shape[-1] == channels


def test_single_frames_are_not_stacked():
  with pytest.raises(ValueError, match='num_stacked=4 is only supported'):
    environments.make('MiniGrid-Empty-5x5-v0', seed=0, num_stacked=4)
  with pytest.raises(ValueError, match="num_stacked='4' must be an integer"):
    environments.make('pong', seed=0, num_stacked='4')


def test_options_reach_the_environment():
  environment = environments.make('pong', seed=0, stack=1)
  assert environment.observation_spec().shape == (84, 84, 1)


@pytest.mark.parametrize(
  'name', ['pong', 'MiniGrid-DoorKey-5x5-v0', 'Chain-9', 'Recall-6']
)
def test_observations_are_not_modified_later(name):
  environment = environments.make(name, seed=0)
  actions = (0, 1, 1, 0, 1)
  shown = [environment.reset(), *map(environment.step, actions)]
  copies = [timestep.observation.copy() for timestep in shown]
  environment.reset()
  for action in actions:
    environment.step(action)
  for timestep, copy in zip(shown, copies, strict=True):
    np.testing.assert_array_equal(timestep.observation, copy)


@pytest.mark.parametrize(
  'name, nearest',
  [
    ('montezumas_revenge', 'montezuma_revenge'),
    ('MsPacman', 'ms_pacman'),
    ('ms_pacman:ghost_easy', 'ms_pacman:ghosts_easy'),
    ('pong:ghosts_easy', 'ms_pacman:ghosts_easy'),
    ('adventure', 'venture'),  # A ROM, but not one of the 57 games.
    ('pong:pixels=35', "pong:pixels=42'"),
    ('hero:miners_easy:pixels', "hero:miners_easy:pixels=42'"),
    ('MiniGrid-DoorKey-9x9-v0', 'MiniGrid-DoorKey-8x8-v0'),
    ('MiniGrid-FourRooms-v0:fixed=one', "MiniGrid-FourRooms-v0:fixed=3'"),
    ('MiniGrid-FourRooms-v0:no_goal:fixed', 'MiniGrid-FourRooms-v0:fixed:no_'),
    ('MiniGrid-FourRooms-v0:fixed:fixed=2', "MiniGrid-FourRooms-v0:fixed=2'"),
    ('MiniGrid-FourRooms-v0:new_cel=-0.1', 'MiniGrid-FourRooms-v0:new_cell='),
    ('MiniGrid-FourRooms-v0:new_cell', "MiniGrid-FourRooms-v0:new_cell=-0.1'"),
    ('MiniGrid-FourRooms-v0:new_cell=nan', 'MiniGrid-FourRooms-v0:new_cell=-0'),
    ('MiniGrid-FourRooms-v0:no_goal=1', "MiniGrid-FourRooms-v0:no_goal'"),
    ('MiniGrid-FourRooms-v0:', "MiniGrid-FourRooms-v0'"),
    ('MiniGrid-FourRoom-v0:fixed', 'MiniGrid-FourRooms-v0'),
    ('Chain-49:random', "Chain-49:random_actions'"),
    ('Chain-1', "Chain-49'"),
    ('chain-49', "Chain-49'"),
    ('Chain', "Chain-49'"),
    ('Recall-6:fixed', "Recall-6'"),
    ('MiniGrid-WFC-MazeSimple-v0', 'MiniGrid-'),
  ],
)
@pytest.mark.parametrize(
  'use', [environments.validate, lambda name: environments.make(name, seed=0)]
)
def test_the_error_suggests_the_nearest_name(use, name, nearest):
  with pytest.raises(ValueError) as error:
    use(name)
  message = str(error.value)
  assert f'env={name!r} is unknown' in message
  assert f"'{nearest}" in message.split('?')[0]
  assert '\n' not in message


def test_the_error_states_the_limits_of_a_value():
  with pytest.raises(ValueError, match=r"':pixels=42' \(36 to 160\)"):
    environments.validate('pong:pixels=161')


def test_unknown_name_without_suggestion():
  with pytest.raises(ValueError, match="env='' is unknown. Choose"):
    environments.validate('')


def test_the_error_lists_all_modifiers():
  message = (
    "':fixed=3', ':goal=3', ':no_goal', ':open_goal', ':door=0.3', "
    "':new_cell=-0.1'"
  )
  with pytest.raises(ValueError, match=message):
    environments.validate('MiniGrid-FourRooms-v0:layout=3')


def test_every_name_is_valid():
  names = registry._names()
  assert {*atari.ATARI_57, 'Chain-49', 'Recall-6'} < set(names)
  assert {'hero:miners_easy', 'MiniGrid-FourRooms-v0'} < set(names)
  for name in names:
    environments.validate(name)


def test_a_missing_package_is_named(monkeypatch):
  monkeypatch.setitem(registry._MODULES, 'Lost-', 'bt_acme.lost')
  with pytest.raises(ImportError, match="'Lost-1' needs .* 'bt_acme.lost'"):
    environments.validate('Lost-1')
  # Environments of that package are not suggested.
  with pytest.raises(ValueError, match="Did you mean 'pong'"):
    environments.validate('pongg')


@pytest.mark.parametrize('name', ['pong', 'MiniGrid-Empty-5x5-v0'])
def test_environments_print_nothing(name):
  program = (
    'from bt_acme import environments; '
    f'environments.make({name!r}, seed=0).reset()'
  )
  result = python.run('-c', program)
  assert (result.returncode, result.stdout, result.stderr) == (0, '', '')


def test_register(monkeypatch):
  monkeypatch.setattr(registry, '_registered', {})

  def constructor(seed):
    return minigrid.MiniGrid('MiniGrid-Empty-5x5-v0', seed=seed)

  environments.register('mine', constructor)
  environments.validate('mine')
  assert environments.make('mine', seed=0).action_spec().num_values == 7
  environments.register('mine', lambda seed: chain.Chain(5, seed=seed))
  assert environments.make('mine', seed=0).action_spec().num_values == 2
  for name in ('pong', 'Chain-9', 'MiniGrid-Empty-5x5-v0:fixed'):
    with pytest.raises(ValueError, match=f"name='{name}' is already"):
      environments.register(name, constructor)
