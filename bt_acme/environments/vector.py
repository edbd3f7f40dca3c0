"""Vectors of environments that are stepped together in one process."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import dm_env
import numpy as np

from bt_acme.config import checks
from bt_acme.environments import saving

# The result of `VectorEnvironment.state`; its type depends on the class.
States = Any


class VectorStep(NamedTuple):
  """One step of N environments, in arrays that are never modified.

  The step after `is_last` ignores the action and starts an episode: it has
  `is_first`, reward 0 and discount 1.

  Attributes:
    observation: [N, ...], with the dtype of the environments.
    reward: float32 [N]; 0 in first steps.
    discount: float32 [N]; 0 in terminal states.
    is_first: whether the step starts an episode, bool [N].
    is_last: whether the step ends an episode, bool [N].
  """

  observation: np.ndarray
  reward: np.ndarray
  discount: np.ndarray
  is_first: np.ndarray
  is_last: np.ndarray


def space_of(environment: Any) -> tuple[Any, int, int]:
  """Returns the properties that must be equal in all environments of a run.

  Returns:
    The shape of observations, the number of frames stacked in an observation,
    and the number of actions.
  """
  return (
    tuple(environment.observation_spec().shape),
    getattr(environment, 'num_stacked', 1),
    int(environment.action_spec().num_values),
  )


class VectorEnvironment:
  """N environments stepped together, here one after the other.

  Attributes:
    environments: the N environments.
  """

  def __init__(self, environments: Sequence[dm_env.Environment]) -> None:
    """Initializes the vector.

    Args:
      environments: one or more environments with equal `space_of`.

    Raises:
      ValueError: if they differ, or if two of them are the same object.
    """
    self.environments = tuple(environments)
    # An adapter has the environment of another library as `_env`.
    inner = {id(getattr(each, '_env', each)) for each in self.environments}
    checks.require(
      len(inner) == len(self.environments),
      'The constructor of an environment returned the same object twice. '
      'Create a new environment in each call.',
    )
    spec = self.environments[0].observation_spec()
    self._expected = tuple(spec.shape), np.dtype(spec.dtype)
    # Whether an episode has ended, bool [N]; None if unknown.
    self._ended: np.ndarray | None = None
    first, *others = map(space_of, self.environments)
    for other in others:
      if other != first:
        raise ValueError(
          'The environments differ in (observation shape, stacked frames, '
          f'actions): {first} and {other}. Choose environments in which these '
          'are equal.'
        )

  def __len__(self) -> int:
    return len(self.environments)

  def reset(self) -> VectorStep:
    """Starts an episode in every environment."""
    first = self._batch([x.reset() for x in self.environments])
    for i in np.flatnonzero(~first.is_first):
      raise ValueError(
        f'{type(self.environments[i]).__name__}: reset() must return the first '
        'step of an episode (dm_env.restart).'
      )
    self._ended = first.is_last
    return first

  def step(self, actions: Any) -> VectorStep:
    """Takes one action, [N], in each environment."""
    self.send(actions)
    return self.recv()

  def send(self, actions: Any) -> None:
    """Starts a step, or takes it if no thread emulates the environments."""
    pairs = zip(self.environments, actions, strict=True)
    received = self._batch([x.step(action) for x, action in pairs])
    ended = received.is_first if self._ended is None else self._ended
    for i in np.flatnonzero(ended != received.is_first):
      raise ValueError(
        f'{type(self.environments[i]).__name__}: step() must start the next '
        'episode after the last step of an episode, and at no other step.'
      )
    for i in np.flatnonzero(~np.isfinite(received.reward)):
      raise ValueError(
        f'{type(self.environments[i]).__name__}: step() has returned reward '
        f'{received.reward[i]}. Return a finite number.'
      )
    # Outside [0, 1], or NaN.
    for i in np.flatnonzero(~(np.abs(received.discount - 0.5) <= 0.5)):
      raise ValueError(
        f'{type(self.environments[i]).__name__}: step() has returned discount '
        f'{received.discount[i]}. Return a number from 0 to 1.'
      )
    self._received, self._ended = received, received.is_last

  def _batch(self, steps: Sequence[dm_env.TimeStep]) -> VectorStep:
    """Returns the steps as one after checking their types and shapes."""
    shape, dtype = self._expected
    for environment, step in zip(self.environments, steps, strict=True):
      if not isinstance(step, dm_env.TimeStep):
        raise ValueError(
          f'{type(environment).__name__} has returned a {type(step).__name__}. '
          'Return a dm_env.TimeStep.'
        )
      has_reward = getattr(step.reward, 'size', 1) == 1
      if not has_reward or (step.discount is None and not step.first()):
        raise ValueError(
          f'{type(environment).__name__} has returned reward {step.reward} and '
          f'discount {step.discount}. Return one number for each.'
        )
      found = np.asarray(step.observation)
      if found.dtype != dtype or found.shape != shape:
        raise ValueError(
          f'{type(environment).__name__} has returned an observation of shape '
          f'{found.shape} and type {found.dtype}, but its observation_spec() '
          f'has shape {shape} and type {dtype}. Correct one of them.'
        )
    return batch(steps)

  def recv(self) -> VectorStep:
    """Returns the results of the step that `send` started."""
    return self._received

  def state(self) -> States:
    """Returns the states of all environments as serializable values.

    Call this between two steps, not between `send` and `recv`.

    Raises:
      saving.SaveNotSupportedError: if an environment cannot be saved.
    """
    return [saving.state_of(environment) for environment in self.environments]

  def restore(self, state: States) -> None:
    """Restores a state; call this instead of the first `reset`."""
    for environment, own in zip(self.environments, state, strict=True):
      environment.restore(own)
    self._ended = None

  def close(self) -> None:
    """Closes all environments."""
    for environment in self.environments:
      environment.close()


def batch(steps: Sequence[dm_env.TimeStep]) -> VectorStep:
  """Returns the steps of N environments as one."""
  rewards = [np.asarray(step.reward or 0.0).item() for step in steps]
  discounts = [1.0 if x.discount is None else x.discount for x in steps]
  return VectorStep(
    observation=np.stack([step.observation for step in steps]),
    reward=np.array(rewards, np.float32),
    discount=np.array(discounts, np.float32),
    is_first=np.array([step.first() for step in steps]),
    is_last=np.array([step.last() for step in steps]),
  )
