"""The small worlds ask what they say they ask."""

import copy

import dm_env
import numpy as np
import pytest

from bt_acme import environments
from experiments import worlds


@pytest.fixture(scope='module', autouse=True)
def registered():
  worlds.register()


def _shown(timestep):
  return int(np.argmax(timestep.observation[0, 0, :2]))


@pytest.mark.parametrize('answer, last', [(0, 1), (1, -1)])
@pytest.mark.parametrize('error, cost', [(0, 0), (1, -0.5)])
def test_recall(answer, last, error, cost):
  world = worlds.Recall(seed=0)
  signs, copies = [], []
  for _ in range(20):
    timestep = world.reset()
    world.observation_spec().validate(timestep.observation)
    assert timestep.observation[..., 2].all()
    signs.append(_shown(timestep))
    timestep = world.step(error)
    rewards = [timestep.reward]
    for _ in range(6):
      assert not timestep.observation[..., 2].any()
      copies.append(_shown(timestep))
      timestep = world.step(copies[-1] ^ error)
      rewards.append(timestep.reward)
    # The question shows nothing.
    assert not timestep.observation.any() and not timestep.last()
    timestep = world.step(signs[-1] ^ answer)
    assert timestep.last() and timestep.discount == 0
    assert rewards == [0, *[cost] * 6]
    assert timestep.reward == last
  assert set(signs) == {0, 1}
  assert 0.3 < np.mean(copies) < 0.7
  assert world.step(0).step_type == dm_env.StepType.FIRST


def test_seeing_the_world_costs():
  world = worlds.CostlyFourRooms(seed=0)
  for _ in range(2):  # In each episode anew.
    world.reset()
    cells = {world.agent_cell()}
    total = 0.0
    rng = np.random.default_rng(1)
    for _ in range(50):
      timestep = world.step(int(rng.integers(3)))
      cells.add(world.agent_cell())
      total += timestep.reward
    assert len(cells) > 2
    np.testing.assert_allclose(total, -0.1 * (len(cells) - 1), rtol=1e-5)


def test_the_goal_is_worth_its_way():
  world = worlds.CostlyFourRooms(seed=0)
  world.reset()
  timesteps = [world.step(action) for action in (1, 2, 2, 2, 2)]
  assert timesteps[-1].last() and timesteps[-1].discount == 0
  assert sum(t.reward for t in timesteps) == pytest.approx(0.955 - 0.4)


def test_a_labyrinth_has_one_way_to_each_place():
  world = environments.make(worlds.LABYRINTH, seed=0)
  world.reset()
  cells = set(world._env.distances())
  for x, y in [(x, y) for x in range(1, 8, 2) for y in range(1, 8, 2)]:
    assert (x, y) in cells
  # A tree: one edge, two neighbors, fewer than places; no place is a room.
  neighbors = sum((x + dx, y) in cells for x, y in cells for dx in (-1, 1))
  neighbors += sum((x, y + dy) in cells for x, y in cells for dy in (-1, 1))
  assert len(cells) == 31 and neighbors == 2 * (len(cells) - 1)
  colors = {
    cell.color for cell in world._env.grid.grid if cell and cell.type == 'floor'
  }
  assert len(colors) == 6


def _actions_to_the_goal(world):
  """Breadth first, by copies of the world itself."""
  start = copy.deepcopy(world)
  seen, frontier = set(), [(start, 0)]
  while frontier:
    before, actions = frontier.pop(0)
    for action in (0, 1, 2):  # Left, right, forward.
      after = copy.deepcopy(before)
      timestep = after.step(action)
      if timestep.last():
        return actions + 1, timestep
      key = (*after.agent_cell(), after._env.agent_dir)
      if key not in seen:
        seen.add(key)
        frontier.append((after, actions + 1))


def test_the_goal_of_a_labyrinth_is_the_farthest_place():
  world = environments.make(worlds.LABYRINTH, seed=0)
  world.reset()
  actions, timestep = _actions_to_the_goal(world)
  assert actions == max(world._env.distances().values()) == 37
  assert timestep.discount == 0
  assert timestep.reward == pytest.approx(1 - 0.9 * 37 / 200)


def test_a_labyrinth_is_fixed_where_its_name_says_so():
  def observations(name):
    world = environments.make(name, seed=0)
    return [world.reset().observation.tobytes() for _ in range(4)]

  assert len(set(observations(worlds.LABYRINTH))) == 1
  assert len(set(observations('MiniGrid-Labyrinth-v0'))) == 4


def test_a_random_policy_does_not_get_far_in_a_labyrinth():
  world = environments.make(f'{worlds.LABYRINTH}:no_goal', seed=0)
  rng = np.random.default_rng(0)
  cells = []
  for _ in range(20):
    world.reset()
    visited = set()
    for _ in range(200):
      timestep = world.step(int(rng.integers(7)))
      visited.add(world.agent_cell())
    assert timestep.last() and timestep.discount == 1
    cells.append(len(visited))
  assert 2 < np.mean(cells) < 10
