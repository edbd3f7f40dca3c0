"""Tests the `dm_env` adapter for gymnasium environments."""

import gymnasium as gym
import numpy as np
import pytest

from bt_acme.environments import gymnasium


@pytest.mark.parametrize(
  'name, steps, discount',
  [
    ('MountainCarContinuous-v0', 999, 1),  # Its time limit.
    ('CartPole-v1', 11, 0),  # The pole falls.
  ],
)
def test_steps_match_the_specs(name, steps, discount):
  environment = gymnasium.Gymnasium(name, seed=0)
  timesteps = [environment.reset()]
  action = environment.action_spec().generate_value()
  while not timesteps[-1].last():
    environment.observation_spec().validate(timesteps[-1].observation)
    timesteps.append(environment.step(action))
    environment.reward_spec().validate(timesteps[-1].reward)
    environment.discount_spec().validate(timesteps[-1].discount)
  assert timesteps[-1].discount == discount
  assert len(timesteps) == 1 + steps
  assert environment.step(action).first()
  environment.close()


def test_the_seed_determines_the_episodes():
  def starts(seed):
    environment = gymnasium.Gymnasium('Pendulum-v1', seed=seed)
    return np.array([environment.reset().observation for _ in range(3)])

  np.testing.assert_array_equal(starts(3), starts(3))
  assert len(np.unique(np.concatenate([starts(3), starts(4)]), axis=0)) == 6


def test_an_unsupported_space_is_refused():
  class Text(gym.Env):
    observation_space = gym.spaces.Text(5)
    action_space = gym.spaces.Discrete(2)

  with pytest.raises(ValueError, match='observation space Text.*Wrap'):
    gymnasium.Gymnasium(Text(), seed=0)
