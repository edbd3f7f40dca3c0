"""Behavior that acts with a Python policy, such as a script or another model.

For behavior transfer with another library's *agent*, see `agents/external`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from dm_env import specs

from bt_acme.acting import behavior
from bt_acme.core.behavior_transfer import behavior_core
from bt_acme.environments import saving

_HINT = (
  'Pass a function that takes a seed and returns a policy, lambda seed: policy.'
)


class FromCallable(behavior.Behavior):
  """A behavior that acts with a Python policy.

  Attributes:
    name: the name in logs and errors.

  Example:
    ```python
    import numpy as np


    def make_policy(seed):
      rng = np.random.default_rng(seed)
      return lambda observation, prev_action, is_first: rng.integers(7)


    behavior = bt_acme.behaviors.FromCallable(make_policy, name='random')
    ```
  """

  def __init__(
    self,
    make_policy: Callable[[int], Callable[..., Any]],
    name: str | None = None,
  ):
    """Initializes the behavior.

    Args:
      make_policy: a function that returns the policy of one environment for a
        seed. It is called once for each environment. A policy maps
        (observation, previously executed action, whether an episode starts) to
        an action, and may have a state. The policy is called at every step,
        even if its action is not used; in evaluations, only if the behavior has
        an extra action. Actions are integers, and the previous action at the
        first step of an episode is -1. In environments with vector actions,
        actions are vectors, and the previous action at the first step is all
        zeros. The inputs of a policy are read-only. A policy that draws random
        numbers or has a memory should be an object with `state()` and
        `restore(state)`, where states are serializable: a resumed run then
        continues with the same actions. Otherwise, a resumed run creates the
        policy again from its seed.
      name: the name in logs and errors; by default, the name of `make_policy`.
        `transfer` refuses the names of built-in behaviors.

    Raises:
      TypeError: if `make_policy` is not callable.
    """
    if not callable(make_policy):
      raise TypeError(f'make_policy={make_policy!r} is not callable. {_HINT}')
    self._make_policy = make_policy
    self.name = name or str(getattr(make_policy, '__name__', 'callable'))

  def make_core(self, num_actions: int) -> behavior_core.BehaviorCore:
    """Returns a core that receives actions from the host."""
    del num_actions
    return behavior_core.external()

  def make_host(
    self, action_spec: behavior.ActionSpec, seeds: Sequence[int]
  ) -> behavior.Host:
    """Returns the host with the policies of all environments."""
    if isinstance(action_spec, int):
      action_spec = specs.DiscreteArray(action_spec)
    return _CallableHost(
      self.name, [self._policy(seed) for seed in seeds], action_spec
    )

  def host_input_shapes(self) -> jax.ShapeDtypeStruct:
    """Returns the shape of a discrete action."""
    return jax.ShapeDtypeStruct((), np.int32)

  def validate(
    self, observation_shape: Sequence[int], action_spec: behavior.ActionSpec
  ) -> None:
    """Raises ValueError unless the environment's actions are numbers."""
    if not isinstance(action_spec, int) and action_spec.dtype.kind not in 'fiu':
      raise ValueError(
        f'behavior {self.name!r} returns numbers, but this environment needs '
        f'{action_spec}. Wrap the environment so that its actions are numbers.'
      )

  def _policy(self, seed: int) -> Callable[..., Any]:
    """Returns the policy of one environment."""
    try:
      policy = self._make_policy(seed)
    except Exception as error:
      raise RuntimeError(
        f'behavior {self.name!r}: make_policy raised {type(error).__name__}: '
        f'{error}. {_HINT}'
      ) from error
    if not callable(policy):
      raise TypeError(
        f'behavior {self.name!r}: make_policy returned {policy!r}, which '
        f'is not callable. {_HINT}'
      )
    return policy


class _CallableHost(behavior.Host):
  """The policies of N environments; each has its own state."""

  def __init__(
    self, name: str, policies: Sequence[Any], action_spec: specs.Array
  ):
    self._name = name
    self._policies = policies
    self._spec = action_spec
    self._is_float = action_spec.dtype.kind == 'f'
    info: Any = np.finfo if self._is_float else np.iinfo
    limits = info(action_spec.dtype)
    self._low = getattr(action_spec, 'minimum', limits.min)
    self._high = getattr(action_spec, 'maximum', limits.max)
    self._actor_steps = 0

  def inputs(self, *shown: np.ndarray) -> np.ndarray:
    observation, prev_action, is_first, is_last = shown
    shape = (len(self._policies), *self._spec.shape)
    actions = np.zeros(shape, self._spec.dtype)
    for i, policy in enumerate(self._policies):
      if is_last[i]:
        continue
      before = prev_action[i]
      try:
        action = policy(
          jax.tree.map(lambda x, i=i: x[i], observation),
          before if self._spec.shape else before.item(),
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

  def state(self) -> behavior.HostState:
    states = [
      policy.state() if saving.can_be_saved(policy) else None
      for policy in self._policies
    ]
    return {'actor_steps': self._actor_steps, 'policies': states}

  def restore(self, state: behavior.HostState) -> None:
    self._actor_steps = state['actor_steps']
    for policy, own in zip(self._policies, state['policies'], strict=True):
      if saving.can_be_saved(policy):
        policy.restore(own)

  def _where(self, environment: int) -> str:
    return f'at actor step {self._actor_steps} of environment {environment}'

  def _checked(self, action: Any, environment: int) -> np.ndarray:
    """Returns an action as an array, or raises an error if it is invalid."""
    shape, dtype = self._spec.shape, self._spec.dtype
    try:
      value = np.asarray(action)
    except ValueError:  # The action has rows of different lengths.
      value = np.empty((), object)
    # Floats are not accepted as integers, because they would be truncated.
    kinds = 'fiu' if self._is_float else 'iu'
    if value.shape != shape or value.dtype.kind not in kinds:
      expected = f'{dtype} of shape {shape}' if shape else 'one integer'
      raise TypeError(
        f'behavior {self._name!r} returned {action!r} '
        f'{self._where(environment)}. An action must be {expected}.'
      )
    if self._is_float:
      value = value.astype(dtype)
    # With this comparison, NaN is out of range.
    if not np.all((self._low <= value) & (value <= self._high)):
      raise ValueError(
        f'behavior {self._name!r} returned {action!r} '
        f'{self._where(environment)}. An action must lie in '
        f'[{self._low}, {self._high}].'
      )
    return value
