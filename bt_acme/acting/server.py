"""A server on the accelerator that chooses for all actors.

The actors only emulate: each group of their environments asks `InferenceServer`
for its actions through a `RemotePolicy` (Espeholt et al. 2020, SEED RL).
"""

import threading
from typing import Any, List, Optional, Tuple

import jax
import numpy as np
import numpy.typing as npt

from bt_acme import assembly
from bt_acme.acting import frame_stack, grouped_core
from bt_acme.acting import policy as policy_lib
from bt_acme.environments import saving

Statistics = policy_lib.Statistics


class InferenceRequest:
  """What one group asks of the server.

  Attributes:
    answer: actions and extras, as `InferenceServer.act` returns them; None
      until they are there.
    answered: set once the answer is there, or will never come.
  """

  def __init__(
    self,
    group: int,
    newest: np.ndarray,
    inputs: policy_lib.PolicyInput,
    stack: Optional[np.ndarray],
  ):
    """Takes the arguments of `InferenceServer.act`."""
    self.group = group
    self.newest = newest
    self.inputs = inputs
    self.stack = stack
    self.answered = threading.Event()
    self.answer: Any = None


class InferenceServer:
  """Chooses for all actors, whose environments come in groups of G.

  Requests that wait while the device is busy share its next call. A call is
  padded to a power of two of groups, so that few shapes are compiled.

  With `rewards`, the same call makes the intrinsic rewards too, those of
  behaviors included, and the device holds all episodic memories. The features
  of an answer are then `Rewarded`, and the actors have nothing left to do but
  emulate.
  """

  def __init__(
    self,
    agent: assembly.Agent,
    *,
    epsilons: npt.ArrayLike,
    seed: int,
    group_size: int,
    rewards: bool = False,
  ):
    """Builds the policy of all environments.

    Args:
      agent: the agent that acts.
      epsilons: epsilon of every environment of the run, [M].
      seed: the run's seed.
      group_size: G, how many environments ask together; it must divide M.
      rewards: whether to make intrinsic rewards here, which an accelerator does
        faster than the actors. The memory of each environment takes
        `memory_capacity * embedding_size` floats.
    """
    num = np.size(epsilons)
    if num % group_size:
      raise ValueError(
        f'group_size={group_size} does not divide {num} environments.'
      )
    self._group_size = group_size
    self._num_groups = num // group_size
    self._core = grouped_core.GroupedCore(
      agent, group_size=group_size, rewards=rewards
    )
    # Padding acts in an additional group, which belongs to no actor.
    self._state, self._rewards = self._core.init(
      np.append(epsilons, np.zeros(group_size)), seed
    )
    self._start = jax.jit(self._core.start, donate_argnums=4)
    self._step = jax.jit(self._core.step, donate_argnums=(4, 5))
    self._params: Any = None
    self._changed = threading.Condition()
    self._requests: List[InferenceRequest] = []
    self._restored: List[Tuple[int, Any]] = []
    self._stopped = False

  def update_variables(self, variables: assembly.Variables) -> None:
    """Does as `Policy.update_variables`; called from the thread that serves."""
    is_first_update = self._params is None
    self._params = self._core.batched.arrange(variables)
    if is_first_update:
      self._state = self._core.batched.with_embedding(self._params, self._state)

  def restore_statistics(self, group: int, statistics: Statistics) -> None:
    """Lets a group's rewards resume from statistics; called from any thread.

    Args:
      group: the group's index.
      statistics: the group's running statistics, float [G] each.
    """
    with self._changed:
      self._restored.append((group, statistics))

  def act(
    self,
    group: int,
    newest: np.ndarray,
    inputs: policy_lib.PolicyInput,
    stack: Optional[np.ndarray],
  ) -> Tuple[np.ndarray, policy_lib.Extras]:
    """Chooses for one group; called by `RemotePolicy`, from any thread.

    Args:
      group: the group's index; its environments start at group * G.
      newest: uint8 [G, H, W, C], the newest frames.
      inputs: what else the policy sees, without an observation.
      stack: uint8 [G, H, W, C * S], the whole observations if an episode starts
        in any of the environments; else None.

    Returns:
      Actions int32 [G] and extras [G, ...].

    Raises:
      RuntimeError: if the server has stopped, or the group has asked again.
    """
    request = InferenceRequest(group, newest, inputs, stack)
    with self._changed:
      if not self._stopped:
        # An actor that has died may have left a request of the same group.
        for old in self._requests:
          if old.group == group:
            old.answered.set()
        others = [old for old in self._requests if old.group != group]
        self._requests = [*others, request]
        self._changed.notify()
      else:
        request.answered.set()
    request.answered.wait()
    if request.answer is None:
      raise RuntimeError('The inference server has stopped or was asked anew.')
    answer: Tuple[np.ndarray, policy_lib.Extras] = request.answer
    return answer

  def serve(self, timeout_s: float) -> int:
    """Answers all requests that wait, in one call.

    Args:
      timeout_s: how long to wait for the first of them.

    Returns:
      How many requests were answered.
    """
    with self._changed:
      self._changed.wait_for(lambda: self._requests, timeout_s)
      requests, self._requests = self._requests, []
      restored, self._restored = self._restored, []
    try:
      for group, statistics in restored:
        self._restore(group, statistics)
      if requests:
        self.answer(requests)
    finally:  # Release the callers even if answering failed.
      for request in requests:
        request.answered.set()
    return len(requests)

  def stop(self) -> None:
    """Fails all pending and future requests."""
    with self._changed:
      self._stopped = True
      for request in self._requests:
        request.answered.set()
      self._requests = []

  def answer(self, requests: List[InferenceRequest]) -> None:
    """Answers at most one request of each group, in one call.

    It is called from the thread that serves.
    """
    for request in requests:
      if request.stack is not None:
        self._state = self._start(
          self._params,
          np.int32(request.group),
          request.inputs.is_first,
          request.stack,
          self._state,
        )
    count = 1 << (len(requests) - 1).bit_length()
    padded = requests + requests[:1] * (count - len(requests))
    groups = np.full(count, self._num_groups, np.int32)
    groups[: len(requests)] = [request.group for request in requests]
    action, extras, self._state, self._rewards = self._step(
      self._params,
      groups,
      np.concatenate([request.newest for request in padded]),
      jax.tree.map(
        lambda *leaves: np.concatenate(leaves),
        *(request.inputs for request in padded),
      ),
      self._state,
      self._rewards,
    )
    action, extras = jax.tree.map(np.asarray, (action, extras))
    for i, request in enumerate(requests):
      part = slice(i * self._group_size, (i + 1) * self._group_size)
      request.answer = jax.tree.map(
        lambda x, part=part: x[part], (action, extras)
      )

  def _restore(self, group: int, statistics: Statistics) -> None:
    if not self._rewards:
      return  # The actors make the rewards.
    start = group * self._group_size
    # Only an agent in pre-training restores statistics, and it has one reward.
    (state,) = self._rewards
    restored = jax.tree.map(
      lambda x, y: x.at[start : start + self._group_size].set(y),
      state.statistics,
      type(state.statistics)(*statistics),
    )
    self._rewards = (state._replace(statistics=restored),)


class RemotePolicy:
  """Lets a server choose for one group."""

  def __init__(self, server: Any, group: int, frame_channels: int):
    """Makes no call yet.

    Args:
      server: a courier.Client of an `InferenceServer`.
      group: index of the group at the server.
      frame_channels: C, channels of one frame.
    """
    # Keep the client: if it went during a pending call, the process would end.
    self._server = server
    self._group = group
    self._channels = frame_channels
    self._future: Any = None

  def update_variables(self, variables: assembly.Variables) -> None:
    raise RuntimeError('The server fetches its parameters itself.')

  def restore_statistics(self, statistics: Statistics) -> None:
    self._server.restore_statistics(self._group, statistics)

  def request(self, inputs: policy_lib.PolicyInput) -> None:
    observation = inputs.observation
    self._future = self._server.futures.act(
      self._group,
      frame_stack.newest_frame(observation, self._channels),
      inputs._replace(observation=()),
      np.ascontiguousarray(observation) if inputs.is_first.any() else None,
    )

  def receive(self) -> Tuple[np.ndarray, policy_lib.Extras]:
    """Does as `Policy.receive`; raises ConnectionError if no answer comes."""
    try:
      action, extras = self._future.result()
    except Exception as error:  # Courier has a class for each cause.
      raise ConnectionError(
        f'The inference server does not answer: {error}'
      ) from error
    return np.array(action), extras

  def state(self) -> saving.State:
    raise RuntimeError('The server keeps the state of all environments.')

  def restore(self, state: saving.State) -> None:
    raise RuntimeError('The server keeps the state of all environments.')
