"""Environments in the middle of an episode, as values that can be kept.

An environment that has `state()` and `restore(state)` says what its state is,
in plain values: numbers, texts, bytes and arrays, in lists, tuples and dicts.
For one without them `SaveNotSupportedError` is raised, and a run that is saved
starts new episodes when it is resumed. Pickling is not used, because resuming
a run from an untrusted source would then execute its code.
"""

from typing import Any, Dict, List, Optional

import numpy as np


class SaveNotSupportedError(ValueError):
  """The state of an environment cannot be kept."""


class ActionRecording:
  """The current episode of a gymnasium environment, to be played again.

  Whatever such an environment draws comes from its own generator. Therefore the
  generator's state before the episode and the actions since then determine
  everything, and this is much less than what the environment holds.
  """

  def __init__(self, env: Any, seed: Optional[int]):
    """Records an environment.

    Args:
      env: the gymnasium environment.
      seed: the seed of its first episode.
    """
    self._env = env.unwrapped
    self._start: Dict[str, Any] = {'seed': seed, 'generator': None}
    self._actions: Optional[List[Any]] = None

  def reset(self, seed: Optional[int]) -> None:
    """Begins an episode; call it just before the environment's own reset."""
    generator = None
    if seed is None:
      generator = self._env.np_random.bit_generator.state
    self._start = {'seed': seed, 'generator': generator}
    self._actions = []

  def step(self, action: Any) -> None:
    """Takes the episode's next action, which nothing may write to later."""
    assert self._actions is not None
    self._actions.append(action)

  def state(self) -> Dict[str, Any]:
    """Returns the seed and the generator before the episode, and its actions.

    The actions are None before the first episode.
    """
    actions = None if self._actions is None else np.array(self._actions)
    return {**self._start, 'actions': actions}

  def rewind(self, state: Dict[str, Any]) -> None:
    """Puts the generator where it was before the episode of a state."""
    if state['generator'] is not None:
      self._env.np_random.bit_generator.state = state['generator']


def state_of(environment: Any) -> Any:
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


def _says_its_state(environment: Any) -> bool:
  # Some environments have attributes of these names that are no methods.
  return callable(getattr(environment, 'state', None)) and callable(
    getattr(environment, 'restore', None)
  )
