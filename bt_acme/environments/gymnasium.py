"""Adapts gymnasium environments, for example classic control, to `dm_env`.

The agents of bt_acme require uint8 image observations. Agents of other
libraries, such as dm-acme's inside an `agents.BTBuilder`, have no such limit.
"""

from typing import Any, SupportsFloat

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


class Gymnasium(base.Environment):
  """One gymnasium environment.

  The discount is 0 in a terminal state. It stays 1 at a time limit, so the
  learner bootstraps from the last observation.

  An environment whose outermost wrapper has methods `state()` and
  `restore(state)` saves its own state. The state of any other is saved as the
  actions of its episode: if all random numbers come from the environment's own
  generator, the generator's state before the episode and the actions since then
  determine the environment's state, and they need much less space.
  """

  def __init__(self, env: Any, *, seed: int) -> None:
    """Initializes the environment.

    Args:
      env: the environment, or its name in gymnasium's registry, for example
        'MountainCarContinuous-v0'.
      seed: the seed of the episodes.
    """
    # The checker would slow down every step.
    if isinstance(env, str):
      env = gymnasium.make(env, disable_env_checker=True)
    self._env = env
    self._observation_spec = _to_spec(env.observation_space, 'observation')
    self._action_spec = _to_spec(env.action_space, 'action')
    # Arrays are copied, because the caller may modify its own array later.
    is_discrete = isinstance(self._action_spec, specs.DiscreteArray)
    self._as_action: Any = np.int64 if is_discrete else np.array
    self._observation: np.ndarray = np.array(())
    # Seed of the next episode, and of later ones. None continues the
    # environment's random stream.
    self._seed: int | None = seed
    self._later_seed: int | None = None
    self._reset_next = True
    self._start: saving.State = {'seed': seed, 'generator': None}
    self._actions: Any = None  # A list, from the first episode on.

  def reset(self) -> dm_env.TimeStep:
    """Starts an episode."""
    generator = None
    if self._seed is None:
      generator = self._env.unwrapped.np_random.bit_generator.state
    self._start = {'seed': self._seed, 'generator': generator}
    self._actions = []
    self._reset_next = False
    self._observation = self._as_array(self._reset(self._seed))
    self._seed = self._later_seed
    return dm_env.restart(self._observation)

  def step(self, action: Any) -> dm_env.TimeStep:
    """Takes an action; the step after the end of an episode starts the next."""
    if self._reset_next:
      return self.reset()
    observation, reward, terminated, truncated = self._take(action)
    self._reset_next = terminated or truncated
    self._observation = self._as_array(observation)
    return base.time_step(
      self._observation, reward, terminated=terminated, truncated=truncated
    )

  def _reset(self, seed: int | None) -> Any:
    """Resets the gymnasium environment and returns the observation."""
    values = self._env.reset(seed=seed)
    if not isinstance(values, (tuple, list)):
      raise ValueError(f'{self._env}: reset() must return observation, info.')
    return values[0]

  def _take(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool]:
    """Takes and records an action.

    Returns:
      The observation, the reward, and whether the episode terminated or was
      truncated.

    Raises:
      ValueError: if the environment returns other values.
    """
    self._actions.append(self._as_action(action))
    values = self._env.step(self._actions[-1])
    if len(values) != 5:
      raise ValueError(
        f'{self._env}: step() has returned {len(values)} values. Return five: '
        'observation, reward, terminated, truncated, info.'
      )
    if np.size(values[1]) != 1:
      raise ValueError(
        f'{self._env}: step() has returned reward {values[1]}. Return one '
        'number.'
      )
    return values[:4]

  def _as_array(self, observation: Any) -> np.ndarray:
    """Returns a copy of an observation that fits the space."""
    spec, found = self._observation_spec, np.asarray(observation)
    # Bytes would be cut; other numbers only lose precision.
    casting: Any = 'safe' if spec.dtype == np.uint8 else 'same_kind'
    is_equal = found.dtype == spec.dtype
    fits = is_equal or np.can_cast(found.dtype, spec.dtype, casting)
    if not fits or found.shape != spec.shape:
      raise ValueError(
        f'{self._env} has returned an observation of shape {found.shape} and '
        f'type {found.dtype}, but its observation_space has shape {spec.shape} '
        f'and type {spec.dtype}. Correct one of them.'
      )
    return np.array(found, spec.dtype)

  def observation_spec(self) -> specs.Array:
    """Describes observations, as gymnasium's observation space does."""
    return self._observation_spec

  def action_spec(self) -> specs.Array:
    """Describes actions, as gymnasium's action space does."""
    return self._action_spec

  def state(self) -> saving.State:
    """Returns the environment's own state, or else the start of the episode.

    The start is followed by the actions, which are None before the first
    episode, and the observation.
    """
    if saving.can_be_saved(self._env):
      own = self._env.state()
      return {'own': own, 'seed': self._seed, 'reset_next': self._reset_next}
    actions = None if self._actions is None else np.array(self._actions)
    return {**self._start, 'actions': actions, 'observation': self._observation}

  def restore(self, state: saving.State) -> None:
    """Restores a state, which may take replaying the actions of its episode.

    Args:
      state: the result of `state()`.

    Raises:
      saving.SaveNotSupportedError: if the replay leads to another observation,
        because the environment uses a random generator other than its own, or
        keeps information between episodes.
    """
    if 'own' in state:
      self._env.restore(state['own'])
      self._seed, self._reset_next = state['seed'], state['reset_next']
      self._actions = []
      return
    if state['generator'] is not None:
      self._env.unwrapped.np_random.bit_generator.state = state['generator']
    self._seed = state['seed']
    self._reset_next = True
    if state['actions'] is None:
      return
    self.reset()
    for action in state['actions']:
      self.step(action)
    # States of MiniGrid that version 0.1.0 saved have no observation.
    expected = state.get('observation', self._observation)
    if not np.array_equal(self._observation, expected):
      raise saving.SaveNotSupportedError(
        f'{self._env} starts a new episode, because replaying the actions of '
        'the old one leads to another observation. To continue an episode, '
        'draw all random numbers from its np_random and clear everything else '
        'in reset(), or add methods state() and restore(state) to it, or to '
        'its outermost wrapper if it has wrappers.'
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

  def close(self) -> None:
    """Closes the environment."""
    self._env.close()
