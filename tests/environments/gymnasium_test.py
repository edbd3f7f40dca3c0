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


def test_an_unsupported_space_is_refused():
  class Text(gym.Env):
    observation_space = gym.spaces.Text(5)
    action_space = gym.spaces.Discrete(2)

  with pytest.raises(ValueError, match='observation space Text.*Wrap'):
    gymnasium.Gymnasium(Text(), seed=0)


class Walk(gym.Env):
  """A walk that saves the state of a random generator of its own."""

  observation_space = gym.spaces.Box(0, 255, (2, 2, 1), np.uint8)
  action_space = gym.spaces.Discrete(2)

  def __init__(self, dtype=np.uint8, size=2):
    self._rng = np.random.default_rng(0)
    self._blank = np.zeros((size, size, 1), dtype)

  def reset(self, *, seed=None, options=None):
    return self._blank + self._blank.dtype.type(self._rng.integers(100)), {}

  def step(self, action):
    observation, _ = self.reset()
    return observation, 0.0, False, False, {}

  def state(self):
    return self._rng.bit_generator.state

  def restore(self, state):
    self._rng.bit_generator.state = state


def test_an_environment_saves_its_own_state():
  one, other = (gymnasium.Gymnasium(Walk(), seed=0) for _ in range(2))
  one.reset()
  one.step(0)
  other.restore(one.state())
  for _ in range(3):
    found, expected = other.step(1), one.step(1)
    assert found.mid() and (found.observation == expected.observation).all()


@pytest.mark.parametrize(
  'change, found',
  [
    (Walk(np.float32), r'shape \(2, 2, 1\) and type float32'),
    (Walk(np.int64), r'shape \(2, 2, 1\) and type int64'),
    (Walk(size=3), r'shape \(3, 3, 1\) and type uint8'),
  ],
)
def test_observations_outside_the_space_are_refused(change, found):
  walk = Walk()
  environment = gymnasium.Gymnasium(walk, seed=0)
  environment.reset()
  walk._blank = change._blank
  for act in (environment.reset, lambda: environment.step(0)):
    with pytest.raises(ValueError, match=f'{found}, but its observation_space'):
      act()


def test_steps_of_old_environments_are_refused():
  walk = Walk()
  walk.step = lambda action: (walk.reset()[0], 0.0, False, {'lives': 3})
  environment = gymnasium.Gymnasium(walk, seed=0)
  environment.reset()
  with pytest.raises(ValueError, match='step.. has returned 4 values. Return'):
    environment.step(0)
  walk.step = lambda action: (walk.reset()[0], np.ones(2), False, False, {})
  with pytest.raises(ValueError, match=r'reward \[1. 1.\]. Return one number'):
    environment.step(0)
  walk.reset = lambda seed: walk._blank
  with pytest.raises(ValueError, match='reset.. must return observation, info'):
    environment.reset()


def test_discrete_actions_are_hashable_and_rewards_may_be_arrays():
  walk, rewards = Walk(), {1: np.ones(1)}
  walk.step = lambda a: (walk.reset()[0], rewards[a], False, False, {})
  environment = gymnasium.Gymnasium(walk, seed=0)
  environment.reset()
  environment.reward_spec().validate(environment.step(np.int32(1)).reward)
  frozen_lake = gymnasium.Gymnasium('FrozenLake-v1', seed=0)
  frozen_lake.reset()
  assert frozen_lake.step(np.array([1, 2])[0]).mid()
