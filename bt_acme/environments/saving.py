"""Saves and restores environments in the middle of an episode.

An environment with methods `state()` and `restore(state)` can be saved. Its
state consists of serializable values: numbers, strings, bytes and arrays, in
lists, tuples and dicts. For other environments `SaveNotSupportedError` is
raised, and a resumed run starts new episodes. Pickle is not used, because
resuming a run from an untrusted source could then execute arbitrary code.
"""

from typing import Any, Dict, List, Optional, SupportsFloat, Tuple

import numpy as np

from bt_acme.environments import base

# The result of `state()` of an environment: values for JSON and NumPy.
State = Dict[str, Any]


class SaveNotSupportedError(ValueError):
  """The state of an environment cannot be saved."""


class Replayed(base.Environment):
  """A gymnasium environment whose state is saved as the actions of its episode.

  All random numbers come from the environment's own generator. Therefore, the
  generator's state before the episode and the actions since then determine the
  environment's state, and they need much less space.
  """

  def __init__(self, env: Any, seed: int):
    """Initializes the wrapper.

    Args:
      env: the gymnasium environment.
      seed: the seed of the first episode.
    """
    self._env = env
    # Seed of the next episode; None continues the environment's random stream.
    self._seed: Optional[int] = seed
    self._reset_next = True
    self._start: State = {'seed': seed, 'generator': None}
    self._actions: Optional[List[Any]] = None

  def _start_episode(self) -> Any:
    """Resets the environment and returns the observation."""
    generator = None
    if self._seed is None:
      generator = self._env.unwrapped.np_random.bit_generator.state
    self._start = {'seed': self._seed, 'generator': generator}
    self._actions = []
    self._reset_next = False
    observation, _ = self._env.reset(seed=self._seed)
    return observation

  def _take(self, action: Any) -> Tuple[Any, SupportsFloat, bool, bool]:
    """Takes an action; the caller must not modify the action later.

    Returns:
      The observation, the reward, and whether the episode terminated or was
      truncated.
    """
    assert self._actions is not None
    self._actions.append(action)
    observation, reward, terminated, truncated, _ = self._env.step(action)
    self._reset_next = terminated or truncated
    return observation, reward, terminated, truncated

  def state(self) -> State:
    """Returns the seed and generator state before the episode, and the actions.

    The actions are None before the first episode.
    """
    actions = None if self._actions is None else np.array(self._actions)
    return {**self._start, 'actions': actions}

  def restore(self, state: State) -> None:
    """Restores a state by replaying the actions of its episode."""
    if state['generator'] is not None:
      generator = self._env.unwrapped.np_random.bit_generator
      generator.state = state['generator']
    self._seed = state['seed']
    self._reset_next = True
    if state['actions'] is not None:
      self.reset()
      for action in state['actions']:
        self.step(action)

  def close(self) -> None:
    """Closes the environment."""
    self._env.close()


def state_of(environment: Any) -> State:
  """Returns the state of an environment as serializable values.

  Raises:
    SaveNotSupportedError: if the environment cannot be saved.
  """
  if not _can_be_saved(environment):
    name = type(environment).__name__
    raise SaveNotSupportedError(
      f'{name} cannot be saved in the middle of an episode, so a resumed run '
      f'starts new episodes. To avoid this, add methods state() and '
      f'restore(state) to {name}.'
    )
  return environment.state()


def _can_be_saved(environment: object) -> bool:
  # Some environments have attributes of these names that are not methods.
  return callable(getattr(environment, 'state', None)) and callable(
    getattr(environment, 'restore', None)
  )
