"""The small worlds ask what they say they ask."""

import dm_env
import numpy as np
import pytest

from experiments import worlds


def _episode(world, answer, length=10):
  timestep = world.reset()
  sign = int(np.argmax(timestep.observation.max(axis=(0, 1))))
  seen = [timestep]
  while not timestep.last():
    timestep = world.step(sign if answer == 'right' else 1 - sign)
    seen.append(timestep)
  assert len(seen) == length + 2
  return sign, seen


@pytest.mark.parametrize('answer, reward', [('right', 1), ('wrong', -1)])
def test_recall_asks_for_the_sign(answer, reward):
  world = worlds.Recall(seed=0)
  signs = []
  for _ in range(20):
    sign, seen = _episode(world, answer)
    signs.append(sign)
    assert [float(t.reward) for t in seen[1:]] == [0.0] * 10 + [reward]
    # Between sign and question nothing is shown, at the question no sign.
    assert not any(t.observation.any() for t in seen[1:-2])
    assert not seen[-2].observation[..., :2].any()
    world.observation_spec().validate(seen[0].observation)
  assert set(signs) == {0, 1}
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
