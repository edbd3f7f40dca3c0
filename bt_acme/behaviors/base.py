"""What users hand to behavior transfer.

A behavior has two sides. The *core* side is a pair of pure functions that runs
inside the actor's one jitted call. The *host* side, for what does not belong
there (a Python policy, the episodic memory), feeds that call and digests its
features. Both are for N environments of one actor process.
"""

import abc
from typing import Any, Callable, Optional, Sequence, Tuple, Union

import jax
import numpy as np
from dm_env import specs

from bt_acme import config as config_lib
from bt_acme.core.behavior_transfer import behavior as behavior_lib
from bt_acme.core.intrinsic import ngu

# What a behavior acts with: A, for one of A actions; or the spec of a vector.
ActionSpec = Union[int, specs.Array]


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
      prev_action: int32 [N], executed before; -1 on first steps. Vectors are
        [N, ...] of their own dtype, zeros on first steps.
      is_first: bool [N].
      is_last: bool [N], where an episode has ended: no action is taken on.

    Returns:
      A tree of arrays [N, ...].
    """
    del observation, prev_action, is_first, is_last
    return ()

  def digest(self, features: Any) -> None:
    """Takes the core side's features of this step, arrays [N, ...]."""
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

  def intrinsic(
    self,
  ) -> Optional[Tuple[config_lib.IntrinsicConfig, ngu.IntrinsicStatistics]]:
    """The reward that its host makes of its features, and what it starts from.

    An inference server may make it instead; its `digest` then gets an
    `ngu.Rewarded`. None if it makes none.
    """
    return None

  def make_host(
    self, num_environments: int, action_spec: ActionSpec, seed: int
  ) -> Host:
    """The host side; environment i is seeded with seed + i."""
    del num_environments, action_spec, seed
    return Host()

  def validate(
    self, observation_shape: Sequence[int], action_spec: ActionSpec
  ) -> None:
    """Raises ValueError if it cannot act where the agent will."""
    del observation_shape
    if not isinstance(action_spec, int):
      raise ValueError(
        f'behavior {self.name!r} picks one of a number of actions, and this '
        f'environment takes {action_spec}: use a behavior of such vectors, for '
        'instance a policy of your own in behaviors.FromCallable.'
      )


class Uniform(Behavior):
  """Uniform noise."""

  name = 'uniform'

  def make_core(self, num_actions: int) -> behavior_lib.Behavior:
    return behavior_lib.uniform(num_actions)


class ActionRepeat(Behavior):
  """One random action a flight: with flights alone, ez-greedy exploration.

  Campos et al. do not say when their ez-greedy baseline starts its flights.
  Here as behavior transfer does, beside each actor's own epsilon, so that the
  two differ in what flies alone.
  """

  name = 'action_repeat'

  def make_core(self, num_actions: int) -> behavior_lib.Behavior:
    return behavior_lib.action_repeat(num_actions)


class _CallableHost(Host):
  """One policy an environment, each with its own state."""

  def __init__(
    self,
    name: str,
    policies: Sequence[Callable[..., Any]],
    action_spec: ActionSpec,
  ):
    self._name = name
    self._policies = policies
    self._action_spec = action_spec
    self._shape: Tuple[int, ...] = ()
    self._dtype: Any = np.int32
    self._low: Any = 0
    if isinstance(action_spec, int):
      self._high: Any = action_spec - 1
    else:
      self._shape, self._dtype = action_spec.shape, action_spec.dtype
      largest = np.finfo(self._dtype).max
      self._low = getattr(action_spec, 'minimum', -largest)
      self._high = getattr(action_spec, 'maximum', largest)
    self._actor_steps = 0

  def feed(
    self,
    observation: np.ndarray,
    prev_action: np.ndarray,
    is_first: np.ndarray,
    is_last: np.ndarray,
  ) -> np.ndarray:
    actions = np.zeros((len(self._policies), *self._shape), self._dtype)
    for i, policy in enumerate(self._policies):
      if is_last[i]:
        continue
      before = prev_action[i]
      try:
        action = policy(
          jax.tree.map(lambda x, i=i: x[i], observation),
          before if self._shape else before.item(),
          bool(is_first[i]),
        )
      except Exception as error:
        raise RuntimeError(
          f'behavior {self._name!r} raised {type(error).__name__}: {error} '
          f'{self._where(i)}.'
        ) from error
      actions[i] = self._checked(action, i)
    self._actor_steps += 1
    return actions

  def _where(self, environment: int) -> str:
    return f'at actor step {self._actor_steps} of environment {environment}'

  def _checked(self, action: Any, environment: int) -> np.ndarray:
    discrete = isinstance(self._action_spec, int)
    try:
      value = np.asarray(action)
    except ValueError:  # Rows of different lengths.
      value = np.empty((), object)
    kinds = 'iu' if discrete else 'fiu'
    if value.shape != self._shape or value.dtype.kind not in kinds:
      expected = (
        f'one integer in [0, {self._action_spec})'
        if discrete
        else f'{self._dtype} of shape {self._shape}'
      )
      raise TypeError(
        f'behavior {self._name!r} returned {action!r} '
        f'{self._where(environment)}: an action must be {expected}.'
      )
    if not discrete:
      value = value.astype(self._dtype)
    # Said so that NaN is out of range.
    if not np.all((self._low <= value) & (value <= self._high)):
      raise ValueError(
        f'behavior {self._name!r} returned {action!r} '
        f'{self._where(environment)}: out of range, an action must lie in '
        f'[{self._low}, {self._high}].'
      )
    return value


class FromCallable(Behavior):
  """A policy in Python: scripted, or another library's model.

  Attributes:
    name: shown in logs and errors.
  """

  def __init__(
    self,
    make_policy: Callable[[int], Callable[..., Any]],
    name: Optional[str] = None,
  ):
    """Wraps a policy.

    Args:
      make_policy: seed -> policy of one environment; called once for each. A
        policy maps (observation, the action executed before, whether an episode
        starts) to an action, and keeps whatever state it needs. It is called at
        every step, used or not. Actions are integers, -1 before an episode's
        first; or vectors where the environment takes those, zeros before it.
      name: shown in logs and errors; the callable's own by default.
    """
    self._make_policy = make_policy
    self.name = name or str(getattr(make_policy, '__name__', 'callable'))

  def make_core(self, num_actions: int) -> behavior_lib.Behavior:
    del num_actions
    return behavior_lib.external()

  def make_host(
    self, num_environments: int, action_spec: ActionSpec, seed: int
  ) -> Host:
    seeds = [
      np.random.SeedSequence(seed + i).generate_state(1)[0]
      for i in range(num_environments)
    ]
    return _CallableHost(
      self.name, [self._make_policy(int(s)) for s in seeds], action_spec
    )

  def validate(
    self, observation_shape: Sequence[int], action_spec: ActionSpec
  ) -> None:
    """Accepts any environment: the actions are checked at every step."""
