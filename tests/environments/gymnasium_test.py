"""Tests the `dm_env` adapter for gymnasium environments."""

import gymnasium as gym
import numpy as np
import pytest

from bt_acme.environments import gymnasium


@pytest.mark.parametrize(
  'name', ('MountainCarContinuous-v0', 'Pendulum-v1', 'CartPole-v1')
)
def test_steps_match_the_specs(name):
  environment = gymnasium.Gymnasium(name, seed=0)
  timestep = environment.reset()
  assert timestep.first()
  action = environment.action_spec().generate_value()
  steps = 0
  while not timestep.last():
    environment.observation_spec().validate(timestep.observation)
    timestep = environment.step(action)
    environment.reward_spec().validate(timestep.reward)
    environment.discount_spec().validate(timestep.discount)
    steps += 1
  # Pendulum and mountain car end at their time limits; in CartPole the pole
  # falls.
  assert timestep.discount == (0 if name == 'CartPole-v1' else 1)
  assert steps == {'MountainCarContinuous-v0': 999, 'Pendulum-v1': 200}.get(
    name, steps
  )
  assert environment.step(action).first()
  environment.close()


def test_the_seed_determines_the_episodes():
  def starts(seed):
    environment = gymnasium.Gymnasium('Pendulum-v1', seed=seed)
    return np.array([environment.reset().observation for _ in range(3)])

  np.testing.assert_array_equal(starts(3), starts(3))
  assert len(np.unique(np.concatenate([starts(3), starts(4)]), axis=0)) == 6


def test_an_unsupported_space_is_refused():
  name = 'bt_acme/Text-v0'

  class Text(gym.Env):
    observation_space = gym.spaces.Text(5)
    action_space = gym.spaces.Discrete(2)

  if name not in gym.registry:
    gym.register(name, entry_point=Text)
  with pytest.raises(ValueError, match='observation space Text.*Wrap'):
    gymnasium.Gymnasium(name, seed=0)
