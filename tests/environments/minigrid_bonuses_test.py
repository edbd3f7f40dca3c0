"""Bonuses pay for new cells and for opened doors, and for nothing else."""

import numpy as np
import pytest

from bt_acme import environments

COSTLY = 'MiniGrid-FourRooms-v0:fixed=1:new_cell=-0.1'
DOOR = 'MiniGrid-MultiRoom-N2-S4-v0:fixed:door=0.3'


def test_seeing_the_world_costs():
  world = environments.make(COSTLY, seed=0)
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
  world = environments.make(COSTLY, seed=0)
  world.reset()
  timesteps = [world.step(action) for action in (1, 2, 2, 2, 2)]
  assert timesteps[-1].last() and timesteps[-1].discount == 0
  assert sum(t.reward for t in timesteps) == pytest.approx(0.955 - 0.4)


def _open_the_door(world):
  """Walks at random until a door opens; its reward, and rewards before it."""
  rng = np.random.default_rng(0)
  rewards = []
  while True:
    timestep = world.step(int(rng.choice([0, 1, 2, 2, 5])))
    if timestep.first():
      continue
    rewards.append(float(timestep.reward))
    if any(
      c is not None and c.type == 'door' and c.is_open for c in _cells(world)
    ):
      return rewards.pop(), rewards


def _cells(world):
  return world._env.grid.grid


def test_only_the_first_opening_of_a_door_pays():
  world = environments.make(DOOR, seed=0)
  for _ in range(2):  # The next episode pays again.
    world.reset()
    reward, before = _open_the_door(world)
    assert reward == np.float32(0.3)
    assert not any(before)
    toggle = 5
    again = [float(world.step(toggle).reward) for _ in range(2)]
    assert again == [0, 0]


def test_both_bonuses_are_paid():
  world = environments.make(f'{DOOR}:new_cell=0.5', seed=0)
  world.reset()
  reward, before = _open_the_door(world)
  assert reward == np.float32(0.3)
  assert set(before) == {0.0, 0.5}


def test_a_bonus_of_zero_changes_nothing():
  plain, zero = (
    environments.make(f'MiniGrid-MultiRoom-N2-S4-v0:fixed{bonuses}', seed=0)
    for bonuses in ('', ':door=0:new_cell=0')
  )
  rng = np.random.default_rng(0)
  for world in (plain, zero):
    world.reset()
  for action in rng.integers(7, size=100):
    expected, actual = plain.step(action), zero.step(action)
    np.testing.assert_equal(tuple(actual), tuple(expected))
    if not actual.first():
      assert actual.reward.dtype == np.float32


def test_a_door_that_is_not_there_cannot_pay():
  with pytest.raises(ValueError, match='FourRooms-v0 has no door whose'):
    environments.make('MiniGrid-FourRooms-v0:door=0.3', seed=0)
