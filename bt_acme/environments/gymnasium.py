"""Any gymnasium environment as `dm_env`, for example classic control.

The agents of bt_acme itself take those that show uint8 images; agents of other
libraries, such as dm-acme's inside an `agents.BTBuilder`, take all.
"""

from typing import Union

import dm_env
import gymnasium
import numpy as np
from dm_env import specs
from gymnasium import spaces

from bt_acme.environments import base, saving


def _to_spec(space: gymnasium.Space, name: str) -> specs.Array:
  if isinstance(space, spaces.Discrete) and space.start == 0:
    return specs.DiscreteArray(int(space.n), dtype=np.int32, name=name)
  if isinstance(space, spaces.Box):
    return specs.BoundedArray(
      space.shape, space.dtype, space.low, space.high, name=name
    )
  raise ValueError(
    f'the {name} space {space} is neither a Box nor a Discrete that starts at '
    '0: wrap the environment so that it is.'
  )


class Gymnasium(saving.Replayed):
  """One gymnasium environment.

  A terminal has discount 0; at a time limit the discount stays 1, so that the
  last observation is bootstrapped from.
  """

  def __init__(self, env: Union[str, gymnasium.Env], *, seed: int) -> None:
    """Makes the environment.

    Args:
      env: the environment, or its name in gymnasium's registry, for example
        'MountainCarContinuous-v0'.
      seed: the seed of its episodes.
    """
    # Gymnasium's own checks cost time at every step.
    if isinstance(env, str):
      env = gymnasium.make(env, disable_env_checker=True)
    super().__init__(env, seed)
    self._observation_spec = _to_spec(
      self._env.observation_space, 'observation'
    )
    self._action_spec = _to_spec(self._env.action_space, 'action')
    self._observation: np.ndarray = np.array(())

  def reset(self) -> dm_env.TimeStep:
    self._observation = self._as_array(self._start_episode())
    self._seed = None  # The environment's own stream goes on.
    return dm_env.restart(self._observation)

  def step(self, action: np.ndarray) -> dm_env.TimeStep:
    if self._reset_next:
      return self.reset()
    observation, reward, terminated, truncated = self._take(np.array(action))
    self._observation = self._as_array(observation)
    return base.time_step(
      self._observation,
      reward,
      terminated=terminated,
      truncated=truncated,
    )

  def _as_array(self, observation: np.ndarray) -> np.ndarray:
    return np.array(observation, self._observation_spec.dtype)

  def observation_spec(self) -> specs.Array:
    return self._observation_spec

  def action_spec(self) -> specs.Array:
    return self._action_spec

  def state(self) -> saving.State:
    """Returns what the episode can be played again from."""
    return {**super().state(), 'observation': self._observation}

  def restore(self, state: saving.State) -> None:
    """Goes on from a state, by playing its episode again up to there.

    Raises:
      ValueError: if that leads elsewhere, because the environment draws from
        another generator than its own, or keeps something between episodes.
    """
    super().restore(state)
    if state['actions'] is not None and not np.array_equal(
      self._observation, state['observation']
    ):
      raise ValueError(
        f'{self._env} does not play the same episode again, so it cannot be '
        'restored: resume with new episodes.'
      )

  def render_rgb(self) -> np.ndarray:
    """Returns what the environment's own `render` draws.

    Raises:
      ValueError: if it draws nothing.
    """
    if self._env.render_mode != 'rgb_array':
      raise ValueError(
        f"{self._env} has no picture: make it with render_mode='rgb_array'."
      )
    return np.asarray(self._env.render())
