"""The small worlds ask what they say they ask."""

import dm_env
import numpy as np
import pytest
from minigrid.core import constants

from bt_acme import environments
from bt_acme.environments import worlds


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


def test_a_chain_is_walked_back_and_ahead():
  world = environments.make(worlds.CHAIN, seed=0)
  seen = [world.reset().observation.tobytes()]
  seen += [world.step(1).observation.tobytes() for _ in range(48)]
  assert len(set(seen)) == 49 and world.agent_cell() == 48
  timesteps = [world.step(action) for action in (1, 0, *[1] * 10)]
  assert timesteps[0].observation.tobytes() == seen[48]
  assert timesteps[1].observation.tobytes() == seen[47]
  last = timesteps[-1]
  assert last.last() and last.discount == 1 and last.reward == 0
  assert world.step(0).first() and world.agent_cell() == 0
  assert world.step(0).observation.tobytes() == seen[0]


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


def _actions_to_the_goal(world):
  """Breadth first over cells and directions."""
  env = world._env
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
  raise AssertionError('There is no way.')


def test_the_far_goal_is_the_same_in_all_episodes():
  world = environments.make(worlds.FAR_GOAL, seed=3)
  shown = [world.reset().observation.tobytes() for _ in range(3)]
  assert len(set(shown)) == 1
  assert world.agent_cell() == (3, 15)
  goal = next(c for c in world._env.grid.grid if c and c.type == 'goal')
  row, column = divmod(world._env.grid.grid.index(goal), world.grid_size()[0])
  assert (column, row) == (13, 12)
  assert _actions_to_the_goal(world) == 15


def test_a_random_policy_does_not_find_the_far_goal():
  world = environments.make(worlds.FAR_GOAL, seed=0)
  rng = np.random.default_rng(0)
  for _ in range(50):
    world.reset()
    timestep = world.step(0)
    while not timestep.last():
      timestep = world.step(int(rng.integers(7)))
    assert timestep.discount == 1 and timestep.reward == 0
