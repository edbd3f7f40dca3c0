"""What users hand to behavior transfer.

A behavior has two sides. The *core* side is a pair of pure functions that runs
inside the actor's one jitted call. The *host* side, for what does not belong
there (a Python policy, the episodic memory), feeds that call and digests its
features. Both are for N environments of one actor process.
"""

import abc
from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from dm_env import specs

from bt_acme import config as config_lib
from bt_acme.core.behavior_transfer import behavior_core
from bt_acme.core.intrinsic import reward as reward_lib

# What a behavior acts with: A, for one of A actions; or the spec of a vector.
ActionSpec = Union[int, specs.Array]

_HINT = 'make_policy takes a seed and returns a policy, lambda seed: policy'


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

    The arrays are read-only: agent and replay have them too.

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
  def make_core(self, num_actions: int) -> behavior_core.Behavior:
    """The core side, for an environment with `num_actions` actions."""

  def params(self) -> Any:
    """What the core side's `step` gets as its first argument."""
    return ()

  def intrinsic(
    self,
  ) -> Optional[
    Tuple[config_lib.IntrinsicConfig, reward_lib.IntrinsicStatistics]
  ]:
    """The reward that its host makes of its features, and what it starts from.

    An inference server may make it instead; its `digest` then gets an
    `ngu.Rewarded`. None if it makes none.
    """
    return None

  def make_host(self, action_spec: ActionSpec, seeds: Sequence[int]) -> Host:
    """The host side over environments of these seeds."""
    del action_spec, seeds
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


def make_core(
  behavior: Behavior, num_actions: int, observation: Any
) -> behavior_core.Behavior:
  """A behavior's core side, which is checked to propose one integer.

  It is checked here where the host feeds it nothing, and in any case when it is
  compiled.

  Args:
    behavior: that it is of.
    num_actions: A.
    observation: arrays that one environment shows, or their shapes and dtypes.

  Raises:
    TypeError: if it proposes anything else.
  """
  core = behavior.make_core(num_actions)

  def step(params: Any, inputs: Any, state: Any) -> Tuple[jax.Array, Any]:
    action, state = core.step(params, inputs, state)
    action = jnp.asarray(action)
    if action.shape != () or not jnp.issubdtype(action.dtype, jnp.integer):
      raise TypeError(
        f'behavior {behavior.name!r} returns {action.dtype} of shape '
        f'{action.shape}: an action must be one integer in [0, {num_actions}).'
      )
    return action, state

  def first_step(params: Any) -> Any:
    inputs = behavior_core.BehaviorInput(
      observation=jax.tree.map(
        lambda x: jnp.zeros(x.shape, x.dtype), observation
      ),
      prev_action=jnp.zeros([], jnp.int32),
      is_first=jnp.ones([], bool),
      starts_flight=jnp.zeros([], bool),
    )
    return step(params, inputs, core.init(jax.random.key(0)))

  if type(behavior).make_host is Behavior.make_host:
    jax.eval_shape(first_step, behavior.params())
  return core._replace(step=step)


def make_hosts(
  behaviors: Sequence[Behavior],
  action_spec: ActionSpec,
  *,
  seed: int,
  environments: Sequence[int],
) -> List[Host]:
  """The host side of each behavior over some environments of a run.

  Args:
    behaviors: whose they are.
    action_spec: what they act with.
    seed: of the run.
    environments: their indices, which seed them together with that of the
      behavior.
  """
  return [
    behavior.make_host(
      action_spec,
      [
        int(np.random.SeedSequence(seed, spawn_key=(k, i)).generate_state(1)[0])
        for i in environments
      ],
    )
    for k, behavior in enumerate(behaviors)
  ]


def read_only(tree: Any) -> Any:
  """Views of arrays for hosts, which cannot change them."""

  def view(array: npt.ArrayLike) -> np.ndarray:
    viewed = np.asarray(array).view()
    viewed.flags.writeable = False
    return viewed

  return jax.tree.map(view, tree)


def check_proposals(
  behaviors: Sequence[Behavior],
  proposals: np.ndarray,
  *,
  num_actions: int,
  actor_step: int,
) -> None:
  """Checks what the core sides chose, used or not.

  Args:
    behaviors: K of them.
    proposals: int32 [N, K].
    num_actions: A.
    actor_step: to name.

  Raises:
    ValueError: for one that is none of A.
  """
  wrong = (proposals < 0) | (proposals >= num_actions)
  if wrong.any():
    i, k = np.argwhere(wrong)[0]
    raise ValueError(
      f'behavior {behaviors[k].name!r} returned {proposals[i, k]} at actor '
      f'step {actor_step} of environment {i}: out of range, an action must '
      f'lie in [0, {num_actions - 1}].'
    )


class Uniform(Behavior):
  """Uniform noise."""

  name = 'uniform'

  def make_core(self, num_actions: int) -> behavior_core.Behavior:
    return behavior_core.uniform(num_actions)


class ActionRepeat(Behavior):
  """One random action a flight: with flights alone, ez-greedy exploration.

  Campos et al. do not say when their ez-greedy baseline starts its flights.
  Here as behavior transfer does, beside each actor's own epsilon, so that the
  two differ in what flies alone.
  """

  name = 'action_repeat'

  def make_core(self, num_actions: int) -> behavior_core.Behavior:
    return behavior_core.action_repeat(num_actions)


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
      is_float = self._dtype.kind == 'f'
      limits: Any = (np.finfo if is_float else np.iinfo)(self._dtype)
      self._low = getattr(action_spec, 'minimum', limits.min)
      self._high = getattr(action_spec, 'maximum', limits.max)
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
    # Where integers are asked for, floats would be truncated.
    is_float = np.dtype(self._dtype).kind == 'f'
    try:
      value = np.asarray(action)
    except ValueError:  # Rows of different lengths.
      value = np.empty((), object)
    kinds = 'fiu' if is_float else 'iu'
    if value.shape != self._shape or value.dtype.kind not in kinds:
      expected = (
        f'one integer in [0, {self._action_spec})'
        if isinstance(self._action_spec, int)
        else f'{self._dtype} of shape {self._shape}'
      )
      raise TypeError(
        f'behavior {self._name!r} returned {action!r} '
        f'{self._where(environment)}: an action must be {expected}.'
      )
    if is_float:
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
        What it is given is read-only.
      name: shown in logs and errors; the callable's own by default.
    """
    if not callable(make_policy):
      raise TypeError(f'make_policy={make_policy!r} cannot be called: {_HINT}.')
    self._make_policy = make_policy
    self.name = name or str(getattr(make_policy, '__name__', 'callable'))

  def make_core(self, num_actions: int) -> behavior_core.Behavior:
    del num_actions
    return behavior_core.external()

  def make_host(self, action_spec: ActionSpec, seeds: Sequence[int]) -> Host:
    return _CallableHost(
      self.name, [self._policy(seed) for seed in seeds], action_spec
    )

  def _policy(self, seed: int) -> Callable[..., Any]:
    """The policy of one environment."""
    try:
      policy = self._make_policy(seed)
    except Exception as error:
      raise RuntimeError(
        f'behavior {self.name!r}: make_policy raised {type(error).__name__}: '
        f'{error}. {_HINT}.'
      ) from error
    if not callable(policy):
      raise TypeError(
        f'behavior {self.name!r}: make_policy returned {policy!r}, which '
        f'cannot be called: {_HINT}.'
      )
    return policy

  def validate(
    self, observation_shape: Sequence[int], action_spec: ActionSpec
  ) -> None:
    """Accepts any numbers for actions, which are checked at every step."""
    if not isinstance(action_spec, int) and action_spec.dtype.kind not in 'fiu':
      raise ValueError(
        f'behavior {self.name!r} returns numbers, and this environment takes '
        f'{action_spec}: wrap the environment so that its actions are numbers.'
      )
