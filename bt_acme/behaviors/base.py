"""What users hand to behavior transfer.

A behavior has two sides. The *core* side is a pair of pure functions that runs
inside the actor's one jitted call. The *host* side, for what does not belong
there (a Python policy, the episodic memory), feeds that call and digests its
features. Both are for N environments of one actor process.
"""

import abc
from typing import Any, Callable, Optional, Sequence

import numpy as np

from bt_acme.core.behavior_transfer import behavior as behavior_lib


class Host:
  """The host side of one behavior over N environments; does nothing."""

  def feed(
    self,
    observation: np.ndarray,
    prev_action: np.ndarray,
    is_first: np.ndarray,
    is_last: np.ndarray,
  ) -> Any:
    """What the core side receives at this step.

    Args:
      observation: uint8 [N, H, W, C * S].
      prev_action: int32 [N], executed before; -1 on first steps.
      is_first: bool [N].
      is_last: bool [N], where an episode has ended: no action is taken on.

    Returns:
      A tree of arrays [N, ...].
    """
    del observation, prev_action, is_first, is_last
    return ()

  def digest(self, features: Any) -> None:
    """Takes the core side's features of this step, a tree of arrays [N, ...]."""
    del features


class Behavior(abc.ABC):
  """A frozen policy: a black box from observations to actions."""

  name: str = 'behavior'

  @abc.abstractmethod
  def make_core(self, num_actions: int) -> behavior_lib.Behavior:
    """The core side, for an environment with `num_actions` actions."""

  def params(self) -> Any:
    """What the core side's `step` gets as its first argument."""
    return ()

  def make_host(
    self, num_environments: int, num_actions: int, seed: int
  ) -> Host:
    """The host side."""
    del num_environments, num_actions, seed
    return Host()

  def validate(
    self, observation_shape: Sequence[int], num_actions: int
  ) -> None:
    """Raises ValueError if it cannot act where the agent will."""
    del observation_shape, num_actions


class Uniform(Behavior):
  """Uniform noise."""

  name = 'uniform'

  def make_core(self, num_actions: int) -> behavior_lib.Behavior:
    return behavior_lib.uniform(num_actions)


class ActionRepeat(Behavior):
  """One random action a flight: with flights alone, ez-greedy exploration."""

  name = 'action_repeat'

  def make_core(self, num_actions: int) -> behavior_lib.Behavior:
    return behavior_lib.action_repeat(num_actions)


class _CallableHost(Host):
  """One policy an environment, each with its own state."""

  def __init__(
    self,
    name: str,
    policies: Sequence[Callable[..., Any]],
    num_actions: int,
  ):
    self._name = name
    self._policies = policies
    self._num_actions = num_actions
    self._actor_steps = 0

  def feed(
    self,
    observation: np.ndarray,
    prev_action: np.ndarray,
    is_first: np.ndarray,
    is_last: np.ndarray,
  ) -> np.ndarray:
    actions = np.zeros(len(self._policies), np.int32)
    for i, policy in enumerate(self._policies):
      if is_last[i]:
        continue
      try:
        action = policy(
          observation[i], int(prev_action[i]), bool(is_first[i])
        )
      except Exception as error:
        raise RuntimeError(
          f'behavior {self._name!r} raised {type(error).__name__}: {error} '
          f'at actor step {self._actor_steps} of environment {i}.'
        ) from error
      actions[i] = self._checked(action, i)
    self._actor_steps += 1
    return actions

  def _checked(self, action: Any, environment: int) -> int:
    value = np.asarray(action)
    where = f'at actor step {self._actor_steps} of environment {environment}'
    if value.shape != () or not np.issubdtype(value.dtype, np.integer):
      raise TypeError(
        f'behavior {self._name!r} returned {action!r} {where}: an action must '
        f'be one integer in [0, {self._num_actions}).'
      )
    if not 0 <= value < self._num_actions:
      raise ValueError(
        f'behavior {self._name!r} returned {action!r} {where}: out of range, '
        f'an action must lie in [0, {self._num_actions}).'
      )
    return int(value)


class FromCallable(Behavior):
  """A policy in Python: scripted, or another library's model.

  Attributes:
    name: shown in logs and errors.
  """

  def __init__(
    self,
    make_policy: Callable[[int], Callable[[np.ndarray, int, bool], int]],
    name: Optional[str] = None,
  ):
    """Wraps a policy.

    Args:
      make_policy: seed -> policy of one environment; called once for each. A
        policy maps (observation uint8 [H, W, C * S], the action executed before
        or -1, whether an episode starts) to an action, and keeps whatever state
        it needs. It is called at every step, used or not.
      name: shown in logs and errors; the callable's own by default.
    """
    self._make_policy = make_policy
    self.name = name or getattr(make_policy, '__name__', 'callable')

  def make_core(self, num_actions: int) -> behavior_lib.Behavior:
    del num_actions
    return behavior_lib.external()

  def make_host(
    self, num_environments: int, num_actions: int, seed: int
  ) -> Host:
    seeds = np.random.SeedSequence(seed).generate_state(num_environments)
    return _CallableHost(
      self.name, [self._make_policy(int(s)) for s in seeds], num_actions
    )
