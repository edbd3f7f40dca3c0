"""Tests the rewards for new cells and opened doors."""

import numpy as np
import pytest

from bt_acme import environments

COSTLY = 'MiniGrid-FourRooms-v0:fixed=1:new_cell=-0.1'
DOOR = 'MiniGrid-MultiRoom-N2-S4-v0:fixed:door=0.3'


def test_new_cells():
  environment = environments.make(COSTLY, seed=0)
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


def test_the_goal_outweighs_the_cost_of_the_way():
  environment = environments.make(COSTLY, seed=0)
  environment.reset()
  timesteps = [environment.step(action) for action in (1, 2, 2, 2, 2)]
  assert timesteps[-1].last() and timesteps[-1].discount == 0
  assert sum(t.reward for t in timesteps) == pytest.approx(0.955 - 0.4)


def _open_the_door(environment):
  """Acts randomly until a door opens; returns the last and earlier rewards."""
  rng = np.random.default_rng(0)
  rewards = []
  while True:
    timestep = environment.step(int(rng.choice([0, 1, 2, 2, 5])))
    if timestep.first():
      continue
    rewards.append(float(timestep.reward))
    if any(
      c is not None and c.type == 'door' and c.is_open
      for c in _cells(environment)
    ):
      return rewards.pop(), rewards


def _cells(environment):
  return environment._env.grid.grid


def test_only_the_first_opening_of_a_door_is_rewarded():
  environment = environments.make(DOOR, seed=0)
  for _ in range(2):  # Doors are reset in each episode.
    environment.reset()
    reward, before = _open_the_door(environment)
    assert reward == np.float32(0.3)
    assert not any(before)
    toggle = 5
    again = [float(environment.step(toggle).reward) for _ in range(2)]
    assert again == [0, 0]


def test_both_bonuses():
  environment = environments.make(f'{DOOR}:new_cell=0.5', seed=0)
  environment.reset()
  reward, before = _open_the_door(environment)
  assert reward == np.float32(0.3)
  assert set(before) == {0.0, 0.5}


def test_a_bonus_of_zero_changes_nothing():
  plain, zero = (
    environments.make(f'MiniGrid-MultiRoom-N2-S4-v0:fixed{bonuses}', seed=0)
    for bonuses in ('', ':door=0:new_cell=0')
  )
  rng = np.random.default_rng(0)
  for environment in (plain, zero):
    environment.reset()
  for action in rng.integers(7, size=100):
    expected, actual = plain.step(action), zero.step(action)
    np.testing.assert_equal(tuple(actual), tuple(expected))
    if not actual.first():
      assert actual.reward.dtype == np.float32
