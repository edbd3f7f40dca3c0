"""Many environments stepped together in one process."""

from typing import Any, Iterable, List, NamedTuple, Optional, Protocol, Sequence

import dm_env
import numpy as np

from bt_acme.environments import saving

States = Any  # What `Environments.state` returns; each class has its own.


class VectorStep(NamedTuple):
  """One step of N environments, in arrays that nothing writes to later.

  The step after `is_last` ignores the action and starts an episode: it has
  `is_first`, and reward 0 and discount 1, because it has none of its own.

  Attributes:
    observation: [N, ...], with the environments' own dtype.
    reward: float32 [N], 0 on first steps.
    discount: float32 [N], 0 at a terminal.
    is_first: whether the step starts an episode, bool [N].
    is_last: whether the step ends an episode, bool [N].
  """

  observation: np.ndarray
  reward: np.ndarray
  discount: np.ndarray
  is_first: np.ndarray
  is_last: np.ndarray


class Environments(Protocol):
  """N environments stepped together."""

  def __len__(self) -> int:
    """Returns N."""

  def reset(self) -> VectorStep:
    """Starts an episode in every environment."""

  def step(self, actions: np.ndarray) -> VectorStep:
    """Takes one action, int [N], in each environment."""

  def send(self, actions: np.ndarray) -> None:
    """Begins a step, without waiting for it if emulation has threads."""

  def recv(self) -> VectorStep:
    """Waits for the end of the step that `send` began, and returns it."""

  def state(self) -> States:
    """Returns the states of all environments, in plain values.

    It is called between two steps.

    Raises:
      saving.SaveNotSupportedError: if an environment cannot say its state.
    """

  def restore(self, state: States) -> None:
    """Goes on from a state, without a reset; called before the first one."""

  def close(self) -> None:
    """Closes all environments."""


class VectorEnvironment:
  """Steps N environments, one after the other.

  Attributes:
    environments: the N environments.
  """

  def __init__(self, environments: Sequence[dm_env.Environment]) -> None:
    """Takes over the environments.

    Args:
      environments: the environments, at least one; all have the same
        observation and action spec.

    Raises:
      ValueError: if their specs differ.
    """
    self.environments = tuple(environments)
    for spec in ('observation_spec', 'action_spec'):
      first, *others = (getattr(e, spec)() for e in self.environments)
      for other in others:
        if other != first:
          raise ValueError(
            f'environments of one vector differ in {spec}: {first} and {other}.'
          )
    self._received: Optional[VectorStep] = None

  def __len__(self) -> int:
    return len(self.environments)

  def reset(self) -> VectorStep:
    """Starts an episode in every environment."""
    return _batch([environment.reset() for environment in self.environments])

  def step(self, actions: Iterable[int]) -> VectorStep:
    """Takes one action, [N], in each environment."""
    return _batch(
      [
        environment.step(action)
        for environment, action in zip(self.environments, actions, strict=True)
      ]
    )

  def send(self, actions: Iterable[int]) -> None:
    """Takes the step at once, because there is no other thread to take it."""
    self._received = self.step(actions)

  def recv(self) -> VectorStep:
    """Returns the step that `send` took."""
    if self._received is None:
      raise RuntimeError('send must come before recv.')
    step, self._received = self._received, None
    return step

  def observation_spec(self) -> dm_env.specs.Array:
    """Describes the observation of one environment."""
    return self.environments[0].observation_spec()

  def action_spec(self) -> dm_env.specs.Array:
    """Describes the action of one environment."""
    return self.environments[0].action_spec()

  def state(self) -> List[saving.State]:
    """Returns the states of all environments, as `saving` describes them."""
    return [saving.state_of(environment) for environment in self.environments]

  def restore(self, state: List[saving.State]) -> None:
    """Restores a state."""
    for environment, own in zip(self.environments, state, strict=True):
      environment.restore(own)

  def close(self) -> None:
    for environment in self.environments:
      environment.close()


def _batch(steps: Sequence[dm_env.TimeStep]) -> VectorStep:
  return VectorStep(
    observation=np.stack([step.observation for step in steps]),
    reward=np.array([step.reward or 0.0 for step in steps], np.float32),
    discount=np.array(
      [1.0 if step.discount is None else step.discount for step in steps],
      np.float32,
    ),
    is_first=np.array([step.first() for step in steps]),
    is_last=np.array([step.last() for step in steps]),
  )
