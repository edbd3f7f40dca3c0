"""Tests the `dm_env` adapter for gymnasium environments."""

import gymnasium as gym
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


def test_an_unsupported_space_is_refused():
  class Text(gym.Env):
    observation_space = gym.spaces.Text(5)
    action_space = gym.spaces.Discrete(2)

  with pytest.raises(ValueError, match='observation space Text.*Wrap'):
    gymnasium.Gymnasium(Text(), seed=0)
