"""Environments in the middle of an episode, as values that can be kept.

An environment that has `state()` and `restore(state)` says what its state is,
in plain values: numbers, texts, bytes and arrays, in lists, tuples and dicts.
For one without them `SaveNotSupportedError` is raised, and a run that is saved
starts new episodes when it is resumed. Pickling is not used, because resuming
a run from an untrusted source would then execute its code.
"""

from typing import Any, Dict, List, Optional, SupportsFloat, Tuple

import numpy as np

from bt_acme.environments import base

# What `state()` of an environment returns: values that JSON and NumPy can hold.
State = Dict[str, Any]


class SaveNotSupportedError(ValueError):
  """The state of an environment cannot be kept."""


class Replayed(base.Environment):
  """A gymnasium environment whose state is its current episode's actions.

  Whatever such an environment draws comes from its own generator. Therefore the
  generator's state before the episode and the actions since then determine
  everything, and this is much less than what the environment holds.
  """

  def __init__(self, env: Any, seed: int):
    """Takes over an environment.

    Args:
      env: the gymnasium environment.
      seed: the seed of its first episode.
    """
    self._env = env
    # Of the next episode; None continues the environment's own stream.
    self._seed: Optional[int] = seed
    self._reset_next = True
    self._start: State = {'seed': seed, 'generator': None}
    self._actions: Optional[List[Any]] = None

  def _start_episode(self) -> Any:
    """Resets the environment, and returns its observation."""
    generator = None
    if self._seed is None:
      generator = self._env.unwrapped.np_random.bit_generator.state
    self._start = {'seed': self._seed, 'generator': generator}
    self._actions = []
    self._reset_next = False
    observation, _ = self._env.reset(seed=self._seed)
    return observation

  def _take(self, action: Any) -> Tuple[Any, SupportsFloat, bool, bool]:
    """Takes an action, which nothing may write to later.

    Returns:
      The observation, the reward, and whether the episode is over or cut off.
    """
    assert self._actions is not None
    self._actions.append(action)
    observation, reward, terminated, truncated, _ = self._env.step(action)
    self._reset_next = terminated or truncated
    return observation, reward, terminated, truncated

  def state(self) -> State:
    """Returns the seed and the generator before the episode, and its actions.

    The actions are None before the first episode.
    """
    actions = None if self._actions is None else np.array(self._actions)
    return {**self._start, 'actions': actions}

  def restore(self, state: State) -> None:
    """Restores a state by playing its episode again up to there."""
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
    self._env.close()


def state_of(environment: Any) -> State:
  """Returns the state of an environment, in plain values.

  Raises:
    SaveNotSupportedError: if the environment cannot say its state.
  """
  if not _says_its_state(environment):
    name = type(environment).__name__
    raise SaveNotSupportedError(
      f'{name} cannot be saved in the middle of an episode, so a run that goes '
      f'on later starts new episodes: give {name} the methods state() and '
      'restore(state).'
    )
  return environment.state()


def _says_its_state(environment: object) -> bool:
  # Some environments have attributes of these names that are no methods.
  return callable(getattr(environment, 'state', None)) and callable(
    getattr(environment, 'restore', None)
  )
