"""Adapts gymnasium environments, for example classic control, to `dm_env`.

The agents of bt_acme require uint8 image observations. Agents of other
libraries, such as dm-acme's inside an `agents.BTBuilder`, have no such limit.
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
    f'The {name} space {space} is neither a Box nor a Discrete space that '
    'starts at 0. Wrap the environment to convert it.'
  )


class Gymnasium(saving.Replayed):
  """One gymnasium environment.

  The discount is 0 in a terminal state. It stays 1 at a time limit, so the
  learner bootstraps from the last observation.
  """

  def __init__(self, env: Union[str, gymnasium.Env], *, seed: int) -> None:
    """Initializes the environment.

    Args:
      env: the environment, or its name in gymnasium's registry, for example
        'MountainCarContinuous-v0'.
      seed: the seed of the episodes.
    """
    # The checker would slow down every step.
    if isinstance(env, str):
      env = gymnasium.make(env, disable_env_checker=True)
    super().__init__(env, seed)
    self._observation_spec = _to_spec(
      self._env.observation_space, 'observation'
    )
    self._action_spec = _to_spec(self._env.action_space, 'action')
    self._observation: np.ndarray = np.array(())

  def reset(self) -> dm_env.TimeStep:
    """Starts an episode."""
    self._observation = self._as_array(self._start_episode())
    self._seed = None  # Continue the environment's own random stream.
    return dm_env.restart(self._observation)

  def step(self, action: np.ndarray) -> dm_env.TimeStep:
    """Takes an action; the step after the end of an episode starts the next."""
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
    """Describes observations, as gymnasium's observation space does."""
    return self._observation_spec

  def action_spec(self) -> specs.Array:
    """Describes actions, as gymnasium's action space does."""
    return self._action_spec

  def state(self) -> saving.State:
    """Returns the actions of the episode and the current observation."""
    return {**super().state(), 'observation': self._observation}

  def restore(self, state: saving.State) -> None:
    """Restores a state by replaying the actions of its episode.

    Args:
      state: the result of `state()`.

    Raises:
      ValueError: if the replay leads to another observation, because the
        environment uses a random generator other than its own, or keeps
        information between episodes.
    """
    super().restore(state)
    if state['actions'] is not None and not np.array_equal(
      self._observation, state['observation']
    ):
      raise ValueError(
        f'{self._env} cannot be restored, because replaying the actions of the '
        'episode leads to another observation. Draw all random numbers from '
        'its np_random, and clear everything else in reset().'
      )

  def render_rgb(self) -> np.ndarray:
    """Returns the image drawn by the environment's own `render`.

    Raises:
      ValueError: if the environment's render mode is not `rgb_array`.
    """
    if self._env.render_mode != 'rgb_array':
      raise ValueError(
        f'{self._env} does not render images. Create it with '
        "render_mode='rgb_array'."
      )
    return np.asarray(self._env.render())
