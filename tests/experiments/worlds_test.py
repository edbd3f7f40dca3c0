"""The small worlds ask what they say they ask."""

import dm_env
import numpy as np
import pytest

from experiments import worlds


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
