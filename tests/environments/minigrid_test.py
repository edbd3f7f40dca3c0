"""Tests `MiniGrid`: equality with MiniGrid's own environments, modifiers."""

import gymnasium
import numpy as np
import pytest
from minigrid import minigrid_env
from minigrid.core import world_object

from bt_acme import environments
from bt_acme.environments import minigrid, minigrid_view


def _grid(environment):
  return environment.render_rgb(tile_size=8)


@pytest.mark.parametrize(
  'name',
  [
    'MiniGrid-DoorKey-8x8-v0',
    'MiniGrid-Dynamic-Obstacles-6x6-v0',
    'MiniGrid-KeyCorridorS3R2-v0',
    'MiniGrid-LavaGapS7-v0',
    'MiniGrid-MemoryS7-v0',
    'MiniGrid-MultiRoom-N4-S5-v1',
    'MiniGrid-ObstructedMaze-1Dlhb-v0',
    'MiniGrid-RedBlueDoors-8x8-v0',
  ],
)
def test_episodes_equal_those_of_gymnasium(name):
  expected = gymnasium.make(name)
  environment = minigrid.MiniGrid(name, seed=3)
  observation, _ = expected.reset(seed=3)
  timestep = environment.reset()
  rng = np.random.default_rng(0)
  episodes = 0
  for _ in range(600):
    assert timestep.observation.dtype == np.uint8
    np.testing.assert_array_equal(timestep.observation, observation['image'])
    assert environment.agent_cell() == tuple(expected.unwrapped.agent_pos)
    if timestep.last():
      episodes += 1
      timestep, (observation, _) = environment.step(0), expected.reset()
      assert timestep.first()
      continue
    action = rng.integers(environment.action_spec().num_values)
    timestep = environment.step(action)
    observation, reward, terminated, truncated, _ = expected.step(action)
    assert timestep.reward == np.float32(reward)
    assert timestep.last() == (terminated or truncated)
    assert timestep.discount == (0 if terminated else 1)
  assert episodes > 0 or expected.unwrapped.max_steps > 600


def test_observations_equal_those_of_minigrid():
  rng = np.random.default_rng(0)
  for name in minigrid.names():
    environment = minigrid.MiniGrid(name, seed=1)
    environment.reset()
    num_actions = environment.action_spec().num_values
    for _ in range(10):
      timestep = environment.step(rng.integers(num_actions))
      expected = minigrid_env.MiniGridEnv.gen_obs(environment._env)['image']
      np.testing.assert_array_equal(timestep.observation, expected, name)


def test_fixed_layout():
  grids = {}
  for seed, layout in ((0, 3), (1, 3), (0, 4)):
    name = f'MiniGrid-MultiRoom-N4-S5-v1:fixed={layout}'
    environment = environments.make(name, seed=seed)
    environment.reset()
    grids[seed, layout] = _grid(environment)
    environment.step(0)
    environment.reset()
    np.testing.assert_array_equal(_grid(environment), grids[seed, layout])
  np.testing.assert_array_equal(grids[0, 3], grids[1, 3])
  assert not np.array_equal(grids[0, 3], grids[0, 4])


def _where(environment, kind):
  cells = enumerate(environment._env.grid.grid)
  return [i for i, cell in cells if isinstance(cell, kind)]


def test_another_goal_leaves_walls_and_start_unchanged():
  name = 'MiniGrid-FourRooms-v0:fixed=5'
  own = environments.make(name, seed=0)
  own.reset()
  seen = set()
  for goal in range(20):
    moved = environments.make(f'{name}:goal={goal}', seed=goal)
    for _ in range(2):
      observation = moved.reset().observation
      (place,) = _where(moved, world_object.Goal)
      assert own._env.grid.grid[place] is None
      assert moved.agent_cell() == own.agent_cell()
      walls = (_where(each, world_object.Wall) for each in (own, moved))
      assert next(walls) == next(walls)
      np.testing.assert_array_equal(observation, minigrid_view.view(moved._env))
      seen.add(place)
      moved.step(0)
  assert len(seen) == 20


@pytest.mark.parametrize('layout', ['', ':fixed'])
def test_no_goal_changes_only_the_goal(layout):
  name = f'MiniGrid-LavaCrossingS9N1-v0{layout}'
  whole = environments.make(name, seed=2)
  empty = environments.make(f'{name}:no_goal', seed=2)
  for _ in range(3):
    whole.reset()
    observation = empty.reset().observation
    (goal,) = _where(whole, world_object.Goal)
    whole._env.grid.grid[goal] = None
    np.testing.assert_array_equal(_grid(empty), _grid(whole))
    np.testing.assert_array_equal(observation, minigrid_view.view(empty._env))


def test_open_goals_look_like_goals_and_end_no_episode():
  name = 'MiniGrid-Empty-5x5-v0'
  env, real = (
    environments.make(name + word, seed=0) for word in (':open_goal', '')
  )
  steps = env.reset(), real.reset()
  np.testing.assert_array_equal(*(step.observation for step in steps))
  forward, right = 2, 1
  for action in (forward, forward, right, forward, forward):
    step, ended = env.step(action), real.step(action)
    np.testing.assert_array_equal(_grid(env), _grid(real))
  assert ended.last() and ended.reward == np.float32(1 - 0.9 * 5 / 100)
  assert step.mid() and step.reward == 0
  assert env.step(forward).mid()
  assert env.agent_cell() == (3, 3)


def test_only_the_first_visit_to_a_cell_has_a_bonus():
  environment = environments.make(
    'MiniGrid-FourRooms-v0:fixed=1:new_cell=-0.1', seed=0
  )
  for _ in range(2):  # Visited cells are reset in each episode.
    environment.reset()
    cells = {environment.agent_cell()}
    total = 0.0
    rng = np.random.default_rng(1)
    for _ in range(50):
      timestep = environment.step(int(rng.integers(3)))
      cells.add(environment.agent_cell())
      total += timestep.reward
    assert len(cells) > 2
    np.testing.assert_allclose(total, -0.1 * (len(cells) - 1), rtol=1e-5)


def test_only_the_first_opening_of_a_door_has_a_bonus():
  environment = environments.make(
    'MiniGrid-MultiRoom-N2-S4-v0:fixed:door=0.3:new_cell=0.5', seed=0
  )
  toggle = 5
  for _ in range(2):  # Doors are reset in each episode.
    environment.reset()
    (i,) = _where(environment, world_object.Door)
    door = environment._env.grid.grid[i]
    rng = np.random.default_rng(0)
    rewards = []
    while not door.is_open:
      timestep = environment.step(int(rng.choice([0, 1, 2, 2, toggle])))
      rewards.append(timestep.reward)
    assert rewards.pop() == np.float32(0.3)
    assert set(rewards) == {0.0, 0.5}
    again = [environment.step(toggle).reward for _ in range(2)]
    assert again == [0, 0] and door.is_open
    assert again[0].dtype == np.float32


@pytest.mark.parametrize(
  'name, wrong',
  [
    ('FourRooms-v0:goal=3', "'goal=3' needs a fixed layout of FourRooms"),
    ('DoorKey-5x5-v0:fixed:goal=3', 'needs a fixed layout of FourRooms'),
    ('KeyCorridorS3R1-v0:no_goal', "S3R1-v0 has no goal.*'no_goal'"),
    ('KeyCorridorS3R1-v0:open_goal', "no goal.*'open_goal'"),
    ('FourRooms-v0:door=0.3', "FourRooms-v0 has no door.*'door'"),
    ('Empty-5x5-v0:no_goal:open_goal', 'exclude each other'),
    ('Dynamic-Obstacles-5x5-v0:open_goal', 'obstacle'),
  ],
)
def test_modifiers_that_do_not_fit_the_environment_are_refused(name, wrong):
  with pytest.raises(ValueError, match=wrong):
    environments.make(f'MiniGrid-{name}', seed=0)
