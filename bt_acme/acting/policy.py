"""Policies that select actions for N environments with one jitted call a step.

`VectorPolicy` selects actions in the actor's own process, and
`inference_server.RemotePolicy` sends requests to a server on the accelerator.
Both select the same actions, because everything that varies between
environments is seeded only by their index (`batched_core`). Each `receive`
follows a `request`.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

from bt_acme import assembly
from bt_acme.acting import batched_core, statistics_store
from bt_acme.core import frame_stacking, leaves, types
from bt_acme.core.intrinsic import ngu_actor
from bt_acme.environments import saving

Statistics = statistics_store.Statistics


@functools.lru_cache(maxsize=8)
def _compiled(
  agent: assembly.Agent, evaluation: bool
) -> tuple[batched_core.BatchedCore, Callable[..., Any], Callable[..., Any]]:
  """Returns an actor core with compiled functions, shared by equal agents."""
  core = batched_core.BatchedCore(agent, evaluation=evaluation)
  return (core, *batched_core.jit_functions(core))


class VectorPolicy:
  """Selects actions in this process."""

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
    self._core, self._start, self._step = _compiled(agent.named(''), evaluation)
    self._behaviors = agent.behavior_params()
    self._channels = agent.spec.frame_channels
    self._state = self._core.init(epsilons, seed, first_environment)
    self._variables: Any = None
    self._params: Any = None
    # NGU's embedding of each environment, from the start of its episode. A
    # stack of all parameters would be copied at every step.
    self._embeddings: tuple[types.Params, ...] = ()
    self._pending: Any = None

  def update_variables(self, variables: assembly.Variables) -> None:
    """Replaces the parameters.

    The embedding of each environment changes when its next episode starts.
    """
    is_first_update = self._params is None
    self._variables = variables
    self._params = self._core.arrange(variables, self._behaviors)
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

  def request(self, inputs: batched_core.PolicyInput) -> None:
    """Requests actions without waiting for them."""
    observation = inputs.observation
    if inputs.is_first.any():
      self._state = self._start(
        self._params, inputs.is_first, observation, self._state
      )
      self._start_embeddings(inputs.is_first)
    newest = frame_stacking.newest_frame(observation, self._channels)
    *self._pending, self._state = self._step(
      self._params,
      inputs._replace(observation=newest),
      self._state,
      self._embeddings,
    )

  def receive(self) -> tuple[np.ndarray, batched_core.Extras]:
    """Waits for actions, int32 [N], and the actor core's extras [N, ...].

    The extras' `features` are a tuple with one entry for each reward of
    `Agent.reward_specs`. A policy that also computes intrinsic rewards returns
    `Rewarded` there instead of `Features`; `HostReward.take` accepts either.
    """
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
    variables = leaves.restore_leaves(self._variables, state['variables'])
    self.update_variables(variables)
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
