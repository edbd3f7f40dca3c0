"""Tests `MiniGrid`: equality with MiniGrid's own environments, modifiers."""

import gymnasium
import numpy as np
import pytest
from minigrid import minigrid_env
from minigrid.core import constants, world_object

from bt_acme import environments
from bt_acme.environments import minigrid, minigrid_view

# The goal is 15 actions away, behind a door, in every episode.
FAR_GOAL = 'MiniGrid-FourRooms-v0:fixed'


def _play(environment, actions):
  return [environment.reset(), *(environment.step(a) for a in actions)]


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


def test_reward_at_the_goal_ends_the_episode_with_discount_0():
  environment = minigrid.MiniGrid('MiniGrid-Empty-5x5-v0', seed=0)
  forward, right = 2, 1
  path = (forward, forward, right, forward, forward)
  *before, last = _play(environment, path)
  assert not any(timestep.last() for timestep in before)
  assert [float(timestep.reward) for timestep in before[1:]] == [0.0] * 4
  assert last.last() and last.discount == 0
  assert last.reward == np.float32(1 - 0.9 * 5 / 100)
  assert environment.agent_cell() == (3, 3)


def test_the_time_limit_keeps_discount_1():
  environment = minigrid.MiniGrid('MiniGrid-Empty-5x5-v0', seed=0)
  timesteps = _play(environment, [0] * 100)
  assert all(timestep.mid() for timestep in timesteps[1:-1])
  assert timesteps[-1].last() and timesteps[-1].discount == 1
  assert environment.step(0).first()


def test_the_seed_determines_the_layouts():
  layouts = {}
  for copy, seed in (('first', 5), ('second', 5), ('other', 6)):
    environment = minigrid.MiniGrid('MiniGrid-MultiRoom-N4-S5-v1', seed=seed)
    grids = []
    for _ in range(3):
      environment.reset()
      grids.append(_grid(environment))
    layouts[copy] = np.stack(grids)
  np.testing.assert_array_equal(layouts['first'], layouts['second'])
  assert not np.array_equal(layouts['first'], layouts['other'])
  assert not np.array_equal(layouts['first'][0], layouts['first'][1])


def test_fixed_layout():
  name = 'MiniGrid-MultiRoom-N4-S5-v1'
  grids = {}
  for seed, layout_seed in ((0, 3), (1, 3), (0, 4)):
    environment = minigrid.MiniGrid(name, seed=seed, layout_seed=layout_seed)
    environment.reset()
    grids[seed, layout_seed] = _grid(environment)
    environment.step(0)
    environment.reset()
    np.testing.assert_array_equal(_grid(environment), grids[seed, layout_seed])
  np.testing.assert_array_equal(grids[0, 3], grids[1, 3])
  assert not np.array_equal(grids[0, 3], grids[0, 4])


def test_another_goal_leaves_walls_and_start_unchanged():
  name = 'MiniGrid-FourRooms-v0:fixed=5'
  own = environments.make(name, seed=0)
  own.reset()
  cells, seen = own._env.grid.grid, set()
  for goal in range(20):
    moved = environments.make(f'{name}:goal={goal}', seed=goal)
    for _ in range(2):
      observation = moved.reset().observation
      others = moved._env.grid.grid
      (place,) = [
        i for i, c in enumerate(others) if isinstance(c, world_object.Goal)
      ]
      assert cells[place] is None
      assert moved.agent_cell() == own.agent_cell()
      assert [isinstance(c, world_object.Wall) for c in cells] == [
        isinstance(c, world_object.Wall) for c in others
      ]
      np.testing.assert_array_equal(observation, minigrid_view.view(moved._env))
      seen.add(place)
      moved.step(0)
  assert len(seen) == 20


@pytest.mark.parametrize('layout_seed', [None, 0])
def test_no_goal_changes_only_the_goal(layout_seed):
  name = 'MiniGrid-LavaCrossingS9N1-v0'
  settings = {'seed': 2, 'layout_seed': layout_seed}
  whole = minigrid.MiniGrid(name, **settings)
  empty = minigrid.MiniGrid(name, **settings, no_goal=True)
  for _ in range(3):
    whole.reset()
    observation = empty.reset().observation
    cells = whole._env.grid.grid
    goals = [c for c in cells if isinstance(c, world_object.Goal)]
    assert len(goals) == 1
    cells[cells.index(goals[0])] = None
    np.testing.assert_array_equal(_grid(empty), _grid(whole))
    np.testing.assert_array_equal(observation, minigrid_view.view(empty._env))


def test_the_cell_of_a_removed_goal_is_floor():
  environment = minigrid.MiniGrid('MiniGrid-Empty-5x5-v0', seed=0, no_goal=True)
  timesteps = _play(environment, [2, 2, 1, 2, 2])
  assert environment.agent_cell() == (3, 3)
  assert not timesteps[-1].last()
  assert all(not timestep.reward for timestep in timesteps)


def test_grid_size_and_rendering():
  environment = minigrid.MiniGrid('MiniGrid-Empty-6x6-v0', seed=0)
  environment.reset()
  assert environment.grid_size() == (6, 6)
  image = environment.render_rgb(tile_size=8)
  assert image.shape == (48, 48, 3) and image.dtype == np.uint8


def _actions_to_the_goal(environment):
  """Computes the shortest distance by breadth-first search."""
  env = environment._env
  frontier = [(*env.agent_pos, env.agent_dir)]
  seen, actions = set(frontier), 0
  while frontier:
    reached = []
    for x, y, direction in frontier:
      cell = env.grid.get(x, y)
      if cell is not None and cell.type == 'goal':
        return actions
      dx, dy = constants.DIR_TO_VEC[direction]
      ahead = env.grid.get(x + dx, y + dy)
      reached += [(x, y, (direction + side) % 4) for side in (1, -1)]
      if ahead is None or ahead.can_overlap():
        reached.append((x + dx, y + dy, direction))
    frontier = [state for state in dict.fromkeys(reached) if state not in seen]
    seen.update(frontier)
    actions += 1
  raise AssertionError('The goal is unreachable.')


def test_the_far_goal_is_the_same_in_all_episodes():
  environment = environments.make(FAR_GOAL, seed=3)
  shown = [environment.reset().observation.tobytes() for _ in range(3)]
  assert len(set(shown)) == 1
  assert environment.agent_cell() == (3, 15)
  goal = next(c for c in environment._env.grid.grid if c and c.type == 'goal')
  row, column = divmod(
    environment._env.grid.grid.index(goal), environment.grid_size()[0]
  )
  assert (column, row) == (13, 12)
  assert _actions_to_the_goal(environment) == 15


def test_a_random_policy_does_not_find_the_far_goal():
  environment = environments.make(FAR_GOAL, seed=0)
  rng = np.random.default_rng(0)
  for _ in range(50):
    environment.reset()
    timestep = environment.step(0)
    while not timestep.last():
      timestep = environment.step(int(rng.integers(7)))
    assert timestep.discount == 1 and timestep.reward == 0


def test_open_goals_look_like_goals_and_end_no_episode():
  name = 'MiniGrid-Empty-5x5-v0'
  env, real = (
    environments.make(name + word, seed=0) for word in (':open_goal', '')
  )
  np.testing.assert_array_equal(
    env.reset().observation, real.reset().observation
  )
  forward, right = 2, 1
  for action in (forward, forward, right, forward, forward):
    step, ended = env.step(action), real.step(action)
    np.testing.assert_array_equal(env.render_rgb(), real.render_rgb())
  assert ended.last() and ended.reward > 0
  assert step.mid() and step.reward == 0
  assert env.step(forward).mid()


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
