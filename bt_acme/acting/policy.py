"""Policies that choose for N environments, with one jitted call a turn.

`VectorPolicy` chooses in the actor's own process; `server.RemotePolicy` has a
server on the accelerator choose. Both choose the same actions, because whatever
varies between environments is seeded by their index alone (`batched_core`).
"""

import functools
from typing import Any, Callable, NamedTuple, Protocol, Tuple

import jax
import numpy as np
import numpy.typing as npt

from bt_acme import assembly
from bt_acme.acting import batched_core, frame_stack, statistics_store
from bt_acme.core import leaves, types
from bt_acme.environments import saving

Statistics = statistics_store.Statistics
Array = Any  # NumPy's in an actor, JAX's inside the server's jitted call.
Extras = batched_core.Extras


class PolicyInput(NamedTuple):
  """What N environments show, and what the host adds.

  Attributes:
    observation: uint8 [N, H, W, C * S]; () where it is sent separately.
    prev_action: int32 [N], the action executed before; -1 on first steps.
    prev_reward: float32 [N], the reward received before; 0 on first steps.
    is_first: bool [N], whether an episode starts.
    is_last: bool [N], whether an episode ends.
    host_inputs: what each behavior's host side supplies, trees [N, ...].
  """

  observation: Any
  prev_action: Array
  prev_reward: Array
  is_first: Array
  is_last: Array
  host_inputs: batched_core.HostInputs

  def core_inputs(
    self, newest: Array
  ) -> Tuple[types.AgentInput, batched_core.HostInputs]:
    """Returns the inputs of `BatchedCore.step`.

    Args:
      newest: uint8 [N, H, W, C], the newest frame of each observation.
    """
    return types.AgentInput(
      newest, self.prev_action, self.prev_reward, self.is_first
    ), self.host_inputs


class Policy(Protocol):
  """Chooses actions for N environments; each `receive` follows a `request`."""

  def update_variables(self, variables: assembly.Variables) -> None:
    """Acts with these parameters from now on.

    An embedding changes in each environment when its next episode starts.
    """

  def restore_statistics(self, statistics: Statistics) -> None:
    """Resumes from statistics [N] if it makes intrinsic rewards as well."""

  def request(self, inputs: PolicyInput) -> None:
    """Starts to choose, without waiting."""

  def receive(self) -> Tuple[np.ndarray, Extras]:
    """Waits for actions, int32 [N], and the actor core's extras [N, ...].

    The extras' `features` are a tuple, with one entry for each reward of
    `Agent.reward_specs`. A policy that makes intrinsic rewards as well gives
    `Rewarded` there instead of `Features`; `HostReward.take` accepts either.
    """

  def state(self) -> saving.State:
    """Returns all that choosing depends on, in plain values."""

  def restore(self, state: saving.State) -> None:
    """Goes on from a state, after a first `update_variables`."""


class _Compiled(NamedTuple):
  """The functions of a policy."""

  core: batched_core.BatchedCore
  start: Callable[..., Any]
  step: Callable[..., Any]


@functools.lru_cache(maxsize=8)
def _compiled(agent: assembly.Agent, evaluation: bool) -> _Compiled:
  """Makes the functions once for all equal agents, so that JAX does as well."""
  core = batched_core.BatchedCore(agent, evaluation=evaluation)
  return _Compiled(
    core,
    jax.jit(core.start, donate_argnums=3),
    jax.jit(core.step, donate_argnums=3),
  )


class VectorPolicy:
  """Chooses in this process."""

  def __init__(
    self,
    agent: assembly.Agent,
    *,
    epsilons: npt.ArrayLike,
    seed: int,
    first_environment: int = 0,
    evaluation: bool = False,
  ):
    """Builds the policy; `update_variables` must come before its first use.

    Args:
      agent: the agent that acts.
      epsilons: epsilon of every environment, [N] (`core/epsilon.py`).
      seed: the run's seed.
      first_environment: index of the first environment in the whole run, which
        seeds it together with `seed`.
      evaluation: whether to leave flights out.
    """
    compiled = _compiled(agent.nameless, evaluation)
    self._core, self._start, self._step = compiled
    self._channels = agent.spec.frame_channels
    self._state = self._core.init(epsilons, seed, first_environment)
    self._variables: Any = None
    self._params: Any = None
    self._pending: Any = None

  def update_variables(self, variables: assembly.Variables) -> None:
    is_first_update = self._params is None
    self._variables = variables
    self._params = self._core.arrange(variables)
    if is_first_update:
      self._state = self._core.with_embedding(self._params, self._state)

  def restore_statistics(self, statistics: Statistics) -> None:
    del statistics  # The actor makes the rewards itself.

  def request(self, inputs: PolicyInput) -> None:
    if self._params is None:
      raise RuntimeError('update_variables must come before select_actions.')
    observation = inputs.observation
    if inputs.is_first.any():
      self._state = self._start(
        self._params, inputs.is_first, observation, self._state
      )
    newest = frame_stack.newest_frame(observation, self._channels)
    *self._pending, self._state = self._step(
      self._params, *inputs.core_inputs(newest), self._state
    )

  def receive(self) -> Tuple[np.ndarray, Extras]:
    action, extras = self._pending
    return np.array(action), jax.tree.map(np.asarray, extras)

  def state(self) -> saving.State:
    return {
      'variables': leaves.tree_leaves(self._variables),
      'acting': leaves.tree_leaves(self._state),
    }

  def restore(self, state: saving.State) -> None:
    if self._params is None:
      raise RuntimeError('update_variables must come before restore.')
    self.update_variables(
      leaves.restore_leaves(self._variables, state['variables'])
    )
    self._state = leaves.restore_leaves(self._state, state['acting'])
