"""Tests finding environments by name, and suggestions for wrong names."""

import types

import dm_env
import numpy as np
import pytest

from bt_acme import assembly, environments
from bt_acme.environments import atari, chain, minigrid, registry
from tests import python


@pytest.mark.parametrize(
  'name, options, shape, num_actions',
  [
    ('pong', {}, (84, 84, 4), 18),
    ('pong', {'num_stacked': 1}, (84, 84, 1), 18),
    ('pong', {'stack': 3}, (84, 84, 3), 18),
    ('hero:miners_easy', {'num_stacked': 2}, (84, 84, 2), 18),
    ('hero:miners_hard:pixels=42', {}, (42, 42, 4), 18),
    ('MiniGrid-DoorKey-8x8-v0', {'num_stacked': 0}, (7, 7, 3), 7),
    ('MiniGrid-MultiRoom-N4-S5-v0:fixed=3', {'num_stacked': 1}, (7, 7, 3), 7),
    ('MiniGrid-FourRooms-v0:fixed=1:no_goal', {}, (7, 7, 3), 7),
    ('MiniGrid-DoorKey-5x5-v0:door=0.3:new_cell=-0.1', {}, (7, 7, 3), 7),
    ('Chain-49', {}, (7, 7, 3), 2),
    ('Chain-50:random_actions', {}, (8, 8, 3), 2),
    ('Recall-6', {}, (7, 7, 3), 2),
  ],
)
def test_environments_match_their_specs(name, options, shape, num_actions):
  environments.validate(name)
  environment = environments.make(name, seed=1, **options)
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
  if 'stack' not in options:
    several = environments.make_vector(name, 2, seed=0, **options)
    assert several.reset().observation.shape == (2, *shape)


def test_arguments_of_make():
  with pytest.raises(ValueError, match='2 environments.*Choose one'):
    environments.make('pong,breakout', seed=0)
  with pytest.raises(ValueError, match='num_stacked=4 is only supported'):
    environments.make('MiniGrid-Empty-5x5-v0', seed=0, num_stacked=4)
  with pytest.raises(ValueError, match="num_stacked='4' must be an integer"):
    environments.make('pong', seed=0, num_stacked='4')
  # As in a list, spaces around a name do not matter.
  environments.make(' Chain-9', seed=0).close()
  environments.make_vector('pong ', 1, seed=0).close()


@pytest.mark.parametrize(
  'name, nearest',
  [
    ('montezumas_revenge', 'montezuma_revenge'),
    ('MsPacman', 'ms_pacman'),
    ('ms_pacman:ghost_easy', 'ms_pacman:ghosts_easy'),
    ('adventure', 'venture'),  # A ROM, but not one of the 57 games.
    ('MiniGrid-DoorKey-9x9-v0', 'MiniGrid-DoorKey-8x8-v0'),
    ('MiniGrid-FourRoom-v0:fixed', 'MiniGrid-FourRooms-v0'),
    ('MiniGrid-WFC-MazeSimple-v0', 'MiniGrid-'),
    ('Chain-1', 'Chain-49'),
    ('chain-49', 'Chain-49'),
    ('Recall-6:fixed', 'Recall-6'),
    ('light_out', 'Lights_out'),
  ],
)
def test_the_error_suggests_similar_names(name, nearest):
  environments.register('Lights_out', lambda seed: None)
  with pytest.raises(ValueError) as error:
    environments.make(name, seed=0)
  message = str(error.value)
  assert message.startswith(f"env={name!r} is unknown. Did you mean '{nearest}")
  assert 'bt_acme.register_environment' in message
  assert '\n' not in message


_OF_MINIGRID = (
  "':fixed=3', ':goal=3', ':no_goal', ':open_goal', ':door=0.3', "
  "':new_cell=-0.1'."
)


@pytest.mark.parametrize(
  'name, modifiers',
  [
    ('pong:pixels=35', "':pixels=42' (36 to 160)."),
    ('pong:pixels=161', "':pixels=42' (36 to 160)."),
    ('hero:miners_easy:pixels', "':pixels=42' (36 to 160)."),
    ('Chain-49:random', "':random_actions=3'."),
    ('Chain-49:random_actions:random_actions', "':random_actions=3'."),
    *(
      (f'MiniGrid-FourRooms-v0:{modifiers}', _OF_MINIGRID)
      for modifiers in (
        *('fixed=one', 'fixed=', 'no_goal:fixed', 'fixed:fixed=2'),
        *('new_cel=-0.1', 'new_cell', 'new_cell=nan', 'no_goal=1', ''),
        *('fixed\n', 'fixed2', 'goal'),
      )
    ),
  ],
)
def test_the_error_lists_all_modifiers(name, modifiers):
  with pytest.raises(ValueError) as error:
    environments.validate(name)
  assert str(error.value) == (
    f'env={name!r} is unknown. The modifiers, in this order, are {modifiers}'
  )


def test_every_name_is_valid():
  for names in (atari.names(), minigrid.names()):
    assert len(names) > 57
    environments.validate(','.join(names))


def test_environments_print_nothing():
  made = "environments.make('pong', seed=0).reset()"
  result = python.check('-c', f'from bt_acme import environments; {made}')
  assert (result.stdout, result.stderr) == ('', '')


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
  for name in ('mine,yours', '', ' mine', 5):
    with pytest.raises(ValueError, match=f'name={name!r} is .* without commas'):
      environments.register(name, constructor)


def test_the_error_of_a_registered_environment_has_its_name(monkeypatch):
  monkeypatch.setattr(registry, '_registered', {})
  made = types.SimpleNamespace(observation_space='text')
  environments.register('mine', lambda seed: made)
  with pytest.raises(ValueError, match="^env='mine': The observation space te"):
    environments.make('mine', seed=0)


# Runs that play several environments.
_A = 'MiniGrid-Empty-5x5-v0'
_B = 'MiniGrid-DoorKey-5x5-v0'


def test_environments_rotate_across_processes():
  names = f'{_A},{_B}'
  assert [environments.name_of(names, i) for i in range(4)] == [_A, _B, _A, _B]
  together = environments.make_vector(names, 4, seed=5)
  apart = environments.make_vector(names, 2, seed=5, first_environment=1)
  alone = environments.make(_B, seed=environments.seed_of(5, 1))
  first = together.reset().observation
  np.testing.assert_array_equal(first[1:3], apart.reset().observation)
  np.testing.assert_array_equal(first[1], alone.reset().observation)
  assert (first[0] != first[1]).any()


def test_the_spec_of_several_environments():
  spec = assembly.spec_by_name(f'{_A},{_B}')
  assert spec == assembly.spec_by_name(_B)._replace(name=f'{_A},{_B}')


@pytest.mark.parametrize(
  'names, wrong',
  [
    (f'{_A},MiniGrid-Emty-5x5-v0', 'MiniGrid-Empty-5x5-v0'),
    (f'{_A},', "env='' is unknown. Choose"),
    (f'{_A},Chain-7', r"env='.*': Chain-7 has observations .* and 2 actions"),
  ],
)
def test_the_error_names_the_wrong_environment(names, wrong):
  with pytest.raises(ValueError, match=wrong):
    assembly.spec_by_name(names)
