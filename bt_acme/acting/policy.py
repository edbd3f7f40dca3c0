"""Policies that select actions for N environments with one jitted call a step.

`VectorPolicy` selects actions in the actor's own process; `server.RemotePolicy`
sends requests to a server on the accelerator. Both select the same actions,
because everything that varies between environments is seeded only by their
index (`batched_core`).
"""

import functools
from typing import Any, Callable, NamedTuple, Optional, Protocol, Tuple

import jax
import numpy as np
import numpy.typing as npt

from bt_acme import assembly
from bt_acme.acting import batched_core, statistics_store
from bt_acme.acting import behavior as behavior_lib
from bt_acme.core import frame_stacking, leaves, types
from bt_acme.core.intrinsic import ngu_actor
from bt_acme.environments import saving

Statistics = statistics_store.Statistics
Array = Any  # A NumPy array; a JAX array inside the server's jitted call.
Extras = batched_core.Extras


class PolicyInput(NamedTuple):
  """The inputs of a policy in N environments, including host inputs.

  Attributes:
    observation: uint8 [N, H, W, C * S]; () if sent separately.
    prev_action: int32 [N], the previous action; -1 on first steps.
    prev_reward: float32 [N], the previous reward; 0 on first steps.
    is_first: bool [N], whether an episode starts.
    is_last: bool [N], whether an episode ends.
    host_inputs: the inputs from each behavior's host side, trees [N, ...].
    flight_weights: float32 [N, K], the learned priorities of the behaviors; ()
      if they are constant.
  """

  observation: Any
  prev_action: Array
  prev_reward: Array
  is_first: Array
  is_last: Array
  host_inputs: batched_core.HostInputs
  flight_weights: Any = ()

  def core_inputs(
    self, newest: Array
  ) -> Tuple[types.AgentInput, batched_core.HostInputs, Any]:
    """Returns the inputs of `BatchedCore.step`.

    Args:
      newest: uint8 [N, H, W, C], the newest frame of each observation.
    """
    agent = types.AgentInput(
      newest, self.prev_action, self.prev_reward, self.is_first
    )
    return agent, self.host_inputs, self.flight_weights


def input_shapes(agent: assembly.Agent, num: int) -> Optional[PolicyInput]:
  """Returns shapes and dtypes of the inputs in N environments.

  Args:
    agent: the agent that acts.
    num: N.

  Returns:
    The inputs without an observation; None if the host inputs of a behavior
    have unknown shapes.
  """

  def shape(dtype: npt.DTypeLike, *row: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((num, *row), dtype)

  if not all(map(behavior_lib.states_host_inputs, agent.behaviors)):
    return None
  hosts = tuple(one.host_input_shapes() for one in agent.behaviors)
  return PolicyInput(
    observation=(),
    prev_action=shape(np.int32),
    prev_reward=shape(np.float32),
    is_first=shape(bool),
    is_last=shape(bool),
    host_inputs=jax.tree.map(lambda x: shape(x.dtype, *x.shape), hosts),
    flight_weights=(
      shape(np.float32, len(agent.behaviors)) if agent.learns_priorities else ()
    ),
  )


class Policy(Protocol):
  """Selects actions for N environments; each `receive` follows a `request`."""

  def update_variables(self, variables: assembly.Variables) -> None:
    """Replaces the parameters.

    The embedding of each environment changes when its next episode starts.
    """

  def restore_statistics(self, statistics: Statistics) -> None:
    """Restores statistics [N], if the policy also computes rewards."""

  def request(self, inputs: PolicyInput) -> None:
    """Requests actions without waiting for them."""

  def receive(self) -> Tuple[np.ndarray, Extras]:
    """Waits for actions, int32 [N], and the actor core's extras [N, ...].

    The extras' `features` are a tuple with one entry for each reward of
    `Agent.reward_specs`. A policy that also computes intrinsic rewards returns
    `Rewarded` there instead of `Features`; `HostReward.take` accepts either.
    """

  def state(self) -> saving.State:
    """Returns the serializable state on which future actions depend."""

  def restore(self, state: saving.State) -> None:
    """Restores a state returned by `state()`, after `update_variables`."""


@functools.lru_cache(maxsize=8)
def _compiled(
  agent: assembly.Agent, evaluation: bool
) -> Tuple[batched_core.BatchedCore, Callable[..., Any], Callable[..., Any]]:
  """Returns an actor core with compiled functions, shared by equal agents."""
  core = batched_core.BatchedCore(agent, evaluation=evaluation)
  return (core, *batched_core.jit_functions(core))


class VectorPolicy:
  """Selects actions in this process; see `Policy`."""

  def __init__(
    self,
    agent: assembly.Agent,
    *,
    epsilons: npt.ArrayLike,
    seed: int,
    first_environment: int = 0,
    evaluation: bool = False,
  ):
    """Initializes the policy; call `update_variables` before its first use.

    Args:
      agent: the agent that acts.
      epsilons: epsilon of every environment, [N] (`core/epsilon.py`).
      seed: the run's seed.
      first_environment: index of the first environment in the whole run. This
        index and `seed` determine the environment's random numbers.
      evaluation: whether to disable flights.
    """
    self._core, self._start, self._step = _compiled(agent.nameless, evaluation)
    self._channels = agent.spec.frame_channels
    self._state = self._core.init(epsilons, seed, first_environment)
    self._variables: Any = None
    self._params: Any = None
    # NGU's embedding of each environment, from the start of its episode. A
    # stack of all parameters would be copied at every step.
    self._embeddings: Tuple[types.Params, ...] = ()
    self._pending: Any = None

  def update_variables(self, variables: assembly.Variables) -> None:
    """Replaces the parameters."""
    is_first_update = self._params is None
    self._variables = variables
    self._params = self._core.arrange(variables)
    if is_first_update:
      self._start_embeddings(np.ones(len(self._state.stack), bool))

  def _start_embeddings(self, is_first: np.ndarray) -> None:
    """Updates the embedding of the environments whose episode starts."""
    if isinstance(self._params, ngu_actor.NGUParams):
      before = self._embeddings or (None,) * len(is_first)
      self._embeddings = tuple(
        self._params.embedding if first else own
        for first, own in zip(is_first, before, strict=True)
      )

  def restore_statistics(self, statistics: Statistics) -> None:
    """Does nothing, because the actor computes the rewards."""
    del statistics

  def request(self, inputs: PolicyInput) -> None:
    """Requests actions without waiting for them."""
    if self._params is None:
      raise RuntimeError('Call update_variables before select_actions.')
    observation = inputs.observation
    if inputs.is_first.any():
      self._state = self._start(
        self._params, inputs.is_first, observation, self._state
      )
      self._start_embeddings(inputs.is_first)
    newest = frame_stacking.newest_frame(observation, self._channels)
    *self._pending, self._state = self._step(
      self._params,
      *inputs.core_inputs(newest),
      self._state,
      self._embeddings,
    )

  def receive(self) -> Tuple[np.ndarray, Extras]:
    """Waits for actions, int32 [N], and extras [N, ...]."""
    # All transfers start before the first one is awaited.
    action, extras = jax.device_get(self._pending)
    return np.array(action), extras

  def state(self) -> saving.State:
    """Returns the serializable state on which future actions depend."""
    return {
      'variables': leaves.tree_leaves(self._variables),
      'acting': leaves.tree_leaves(self._whole_state()),
    }

  def restore(self, state: saving.State) -> None:
    """Restores a state returned by `state()`, after `update_variables`."""
    if self._params is None:
      raise RuntimeError('Call update_variables before restore.')
    self.update_variables(
      leaves.restore_leaves(self._variables, state['variables'])
    )
    whole = leaves.restore_leaves(self._whole_state(), state['acting'])
    self._state = whole._replace(embedding=())
    self._embeddings = tuple(
      jax.tree.map(lambda x, i=i: x[i], whole.embedding)
      for i in range(len(self._embeddings))
    )

  def _whole_state(self) -> batched_core.ActingState:
    """Returns the state with the embeddings of all environments."""
    if not self._embeddings:
      return self._state
    embedding = batched_core.stack_trees(self._embeddings)
    return self._state._replace(embedding=embedding)
