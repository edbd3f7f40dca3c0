"""The interface of behaviors, the policies that behavior transfer reuses.

A behavior has two sides. The *core* side is a pair of pure functions that run
inside the actor's jitted call. The *host* side is for code that cannot run
there (a policy in Python, the episodic memory). The host side supplies inputs
of that call and is updated with the features that the call returns. Both sides
handle all N environments of one actor process. The implementations are in
`bt_acme/behaviors`.
"""

import abc
import warnings
from collections.abc import Sequence
from typing import Any, TypeAlias, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from dm_env import specs

from bt_acme.core import types
from bt_acme.core.behavior_transfer import behavior_core
from bt_acme.core.intrinsic import reward_statistics as reward_lib

# The number of discrete actions, or the spec of a continuous action vector.
ActionSpec: TypeAlias = int | specs.Array
# Trees of arrays that the two sides of a behavior exchange or store.
Inputs = Any
Features = Any
HostState = Any
Tree = TypeVar('Tree')


def _warn_of_old_name(old: str, new: str) -> None:
  warnings.warn(
    f'{old} is deprecated. Use {new}.',
    DeprecationWarning,
    stacklevel=3,
  )


class Host:
  """The host side of a behavior for N environments; does nothing by default.

  Until version 0.1, `inputs` was called `feed`, and `update` was called
  `digest`. Both old names still work, with a warning.

  Example:
    ```python
    from bt_acme import behaviors


    class CountingHost(behaviors.Host):
      num_steps = 0

      def update(self, features):
        self.num_steps += 1
    ```
  """

  def __init_subclass__(cls, **kwargs: object):
    super().__init_subclass__(**kwargs)
    for old, new in (('feed', 'inputs'), ('digest', 'update')):
      if old in vars(cls) and new not in vars(cls):
        _warn_of_old_name(f'{cls.__name__}.{old}', new)
        setattr(cls, new, vars(cls)[old])

  def inputs(
    self,
    observation: np.ndarray,
    prev_action: np.ndarray,
    is_first: np.ndarray,
    is_last: np.ndarray,
  ) -> Inputs:
    """Returns the host inputs of the core side for this step.

    The arrays are read-only, because the agent and the replay use them too.

    Args:
      observation: uint8 [N, H, W, C * S].
      prev_action: int32 [N], the previous action; -1 on first steps. Vector
        actions are [N, ...] of their own dtype, with zeros on first steps.
      is_first: bool [N], whether an episode starts with the observation.
      is_last: bool [N], whether an episode ends with the observation, so that
        no action follows.

    Returns:
      A tree of arrays [N, ...].
    """
    del observation, prev_action, is_first, is_last
    return ()

  def skip(self, environments: np.ndarray) -> None:
    """Receives, before `update`, which environments the core side skipped.

    Their features are those of an earlier step. A behavior skips some if it
    processes only the episodes of its own flights
    (`TransferConfig.occasional`).

    Args:
      environments: bool [N].
    """
    del environments

  def update(self, features: Features) -> None:
    """Updates the host with the core side's features, arrays [N, ...]."""
    del features

  def feed(self, *shown: np.ndarray) -> Inputs:
    """Deprecated name of `inputs`."""
    _warn_of_old_name('Host.feed', 'inputs')
    # A subclass that overrides only the old name may call it through `super()`.
    is_overridden = type(self).feed is not Host.feed
    return (Host.inputs if is_overridden else type(self).inputs)(self, *shown)

  def digest(self, features: Features) -> None:
    """Deprecated name of `update`."""
    _warn_of_old_name('Host.digest', 'update')
    is_overridden = type(self).digest is not Host.digest
    (Host.update if is_overridden else type(self).update)(self, features)

  def state(self) -> HostState:
    """Returns the state between two steps as serializable values."""
    return ()

  def restore(self, state: HostState) -> None:
    """Restores a state returned by `state()`."""
    del state


class Behavior(abc.ABC):
  """A frozen policy: a black box from observations to actions.

  Example:
    ```python
    from bt_acme import behaviors


    class Renamed(behaviors.Behavior):
      name = 'renamed'

      def make_core(self, num_actions):
        return behaviors.Uniform().make_core(num_actions)


    behavior = Renamed()
    ```
  """

  name: str = 'behavior'

  @abc.abstractmethod
  def make_core(self, num_actions: int) -> behavior_core.BehaviorCore:
    """Builds the core side for an environment with `num_actions` actions.

    Agents with the same behavior share the compiled core side, so what can
    change belongs in `params()`.
    """

  def params(self) -> types.Params:
    """Returns the parameters, the first argument of the core side's `step`."""
    return ()

  def intrinsic(self) -> reward_lib.RewardSpec | None:
    """Returns the reward that the host computes from the features, or None.

    An inference server may compute the reward instead. The host's `update` then
    receives rewards instead of features; `HostReward.take` accepts either.
    """
    return None

  def make_host(self, action_spec: ActionSpec, seeds: Sequence[int]) -> Host:
    """Builds the host side for environments with the given seeds."""
    del action_spec, seeds
    return Host()

  def host_input_shapes(self) -> Any:
    """Returns the shapes and dtypes of the host inputs of one environment.

    A class that overrides `make_host` should override this method too. An
    inference server then compiles before the first step, not during it.

    Returns:
      A tree of `jax.ShapeDtypeStruct`.
    """
    return ()

  def validate(
    self, observation_shape: Sequence[int], action_spec: ActionSpec
  ) -> None:
    """Raises ValueError if the environment does not suit the behavior."""
    del observation_shape
    if not isinstance(action_spec, int):
      raise ValueError(
        f'behavior {self.name!r} has discrete actions, but the environment '
        f'needs {action_spec}. Use a behavior that proposes such vectors, for '
        'example your own policy with behaviors.FromCallable.'
      )


def make_core(
  behavior: Behavior, num_actions: int, observation: Any
) -> behavior_core.BehaviorCore:
  """Builds a behavior's core side and checks what it returns.

  If the behavior has no host side, the results are checked immediately. They
  are always checked again when the core side is compiled.

  Args:
    behavior: the behavior.
    num_actions: A, the number of actions.
    observation: one environment's observation, or its shapes and dtypes.

  Returns:
    The core side.

  Raises:
    TypeError: if the behavior proposes anything other than one integer, or if
      the shapes or dtypes of its state change.
  """
  core = behavior.make_core(num_actions)

  def step(
    params: types.Params, inputs: behavior_core.BehaviorInput, state: HostState
  ) -> tuple[jax.Array, HostState]:
    action, after = core.step(params, inputs, state)
    action = jnp.asarray(action)
    if action.shape != () or not jnp.issubdtype(action.dtype, jnp.integer):
      raise TypeError(
        f'behavior {behavior.name!r} returns {action.dtype} of shape '
        f'{action.shape}. Return one integer in [0, {num_actions}).'
      )
    kind, before = map(_kind_of, (after, state))
    if kind != before:  # The core side would be compiled again.
      raise TypeError(
        f'behavior {behavior.name!r} turns a state of {before} into {kind}. '
        'Return the structure, shapes and dtypes of `init`.'
      )
    return action, after

  def first_step(params: types.Params) -> tuple[jax.Array, HostState]:
    inputs = behavior_core.BehaviorInput(
      observation=jax.tree.map(jnp.zeros_like, observation),
      prev_action=jnp.zeros([], jnp.int32),
      is_first=jnp.ones([], bool),
      starts_flight=jnp.zeros([], bool),
      prev_reward=jnp.zeros([], jnp.float32),
    )
    return step(params, inputs, core.init(jax.random.key(0)))

  if type(behavior).make_host is Behavior.make_host:
    jax.eval_shape(first_step, behavior.params())
  return core._replace(step=step)


def _kind_of(state: HostState) -> tuple[Any, list[Any]]:
  """Returns the structure of a state, and shapes and dtypes of its leaves."""
  leaves, structure = jax.tree.flatten(state)
  return structure, [(jnp.shape(x), jnp.result_type(x).name) for x in leaves]


def make_hosts(
  behaviors: Sequence[Behavior],
  action_spec: ActionSpec,
  *,
  seed: int,
  environments: Sequence[int],
  proposers: Sequence[int],
) -> list[Host]:
  """Builds the host side of each behavior for some environments of a run.

  Args:
    behaviors: the K behaviors.
    action_spec: the number of discrete actions, or the spec of a vector.
    seed: the run's seed.
    environments: indices of the environments. Each policy is seeded by its
      environment and its behavior, independently of its process.
    proposers: the behaviors that propose actions.

  Returns:
    K host sides, which do nothing for the other behaviors.
  """

  def seeds_of(k: int) -> list[int]:
    return [
      int(np.random.SeedSequence(seed, spawn_key=(k, i)).generate_state(1)[0])
      for i in environments
    ]

  return [
    behavior.make_host(action_spec, seeds_of(k)) if k in proposers else Host()
    for k, behavior in enumerate(behaviors)
  ]


def states_host_inputs(behavior: Behavior) -> bool:
  """Returns whether `host_input_shapes` describes the behavior's own host.

  It does not if a class overrides only `make_host`.
  """
  methods = {'host_input_shapes', 'make_host'}
  nearest = next(x for x in type(behavior).__mro__ if methods & set(vars(x)))
  return 'host_input_shapes' in vars(nearest)


def read_only(tree: Tree) -> Tree:
  """Returns read-only views of arrays."""

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
  first_environment: int = 0,
) -> None:
  """Checks all proposals of the core sides, whether or not they were executed.

  Args:
    behaviors: the K behaviors.
    proposals: int32 [N, K], the action proposed by each behavior.
    num_actions: A, the number of actions.
    actor_step: the actor step to report in an error.
    first_environment: index of the first environment in the whole run.

  Raises:
    ValueError: if a proposal is not one of the A actions.
  """
  wrong = (proposals < 0) | (proposals >= num_actions)
  if wrong.any():
    i, k = np.argwhere(wrong)[0]
    raise ValueError(
      f'behavior {behaviors[k].name!r} returned {proposals[i, k]} at actor '
      f'step {actor_step} of environment {first_environment + i}: out of '
      f'range. Return an action in [0, {num_actions - 1}].'
    )
