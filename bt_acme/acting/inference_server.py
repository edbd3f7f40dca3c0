"""Inference server that selects the actions of all actors on an accelerator.

The actors only run environments. Each group of environments requests its
actions from the `InferenceServer` through a `RemotePolicy` (Espeholt et al.
2020, SEED RL).
"""

import dataclasses
import threading
from collections.abc import Callable
from concurrent import futures
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

from bt_acme import assembly
from bt_acme.acting import batched_core, grouped_core, statistics_store
from bt_acme.core import frame_stacking


@dataclasses.dataclass(eq=False)
class InferenceRequest:
  """A request of one group for its actions.

  Attributes:
    group, inputs, stack: the arguments of `InferenceServer.act`.
    answer: actions and extras, as returned by `InferenceServer.act`; None until
      they are available.
    answered: set once the answer is available or the request has failed.
  """

  group: int
  inputs: batched_core.PolicyInput
  stack: np.ndarray | None
  answer: Any = None
  answered: threading.Event = dataclasses.field(default_factory=threading.Event)


class _CompiledSteps:
  """`GroupedCore.step`, compiled for several numbers of groups.

  The numbers are powers of two. A background thread compiles the function for
  the largest of them, and then for the others. Meanwhile, calls are padded to a
  larger number, so that only calls before the first compilation are delayed.

  Attributes:
    max_size: the largest number of groups.
  """

  def __init__(
    self, step: Any, max_groups: int, compiler: futures.ThreadPoolExecutor
  ):
    """Initializes without compiling.

    Args:
      step: the jitted function.
      max_groups: the largest number of groups with requests.
      compiler: the background thread.
    """
    self._step = step
    self.max_size = 1 << (max_groups - 1).bit_length()
    self._compiled: dict[int, futures.Future[Callable[..., Any]]] = {}
    self._compiler = compiler

  def size(self, num_groups: int) -> int:
    """Returns the number of groups to which a call is padded.

    A size that could not be compiled is not used.

    Args:
      num_groups: the number of groups with requests.
    """
    sizes = [
      n
      for n, step in self._compiled.items()
      if step.done() and not step.cancelled() and step.exception() is None
    ]
    return min((n for n in sizes if n >= num_groups), default=self.max_size)

  def __call__(self, params: Any, *args: Any) -> Any:
    """Calls the step; the arguments are those of `GroupedCore.step`."""
    if not self._compiled:
      self.compile(params, *args)
    return self._compiled[len(args[0])].result()(params, *args)

  def compile(
    self, params: Any, groups: Any, inputs: Any, *states: Any
  ) -> None:
    """Starts to compile for all sizes; the arguments have the largest one."""
    size = self.max_size
    while size:
      batched = _shapes((groups, inputs), size / self.max_size)
      shapes = (_shapes(params), *batched, *_shapes(states))
      self._compiled[size] = self._compiler.submit(_compile, self._step, shapes)
      size //= 2


def _compile(function: Any, shapes: tuple[Any, ...]) -> Callable[..., Any]:
  return function.lower(*shapes).compile()


def _shapes(tree: Any, fraction: float = 1) -> Any:
  """Returns shapes and dtypes, with a fraction of all first dimensions."""

  def shape(leaf: Any) -> jax.ShapeDtypeStruct:
    first = [round(n * fraction) for n in leaf.shape[:1]]
    return jax.ShapeDtypeStruct((*first, *leaf.shape[1:]), leaf.dtype)

  return jax.tree.map(shape, tree)


class InferenceServer:
  """Selects actions for the environments of all actors, in groups of G.

  Requests that arrive while the device is busy share its next call. The number
  of groups in a call is padded to a power of two to limit compilation.

  With `rewards`, the same call also computes the intrinsic rewards, including
  those of behaviors, and the device stores all episodic memories. The features
  of an answer are then `Rewarded`.
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
    """Initializes the policy of all environments.

    Args:
      agent: the agent that acts.
      epsilons: epsilon of every environment of the run, [M].
      seed: the run's seed.
      group_size: G, the number of environments in a request; must divide M.
      rewards: whether to compute intrinsic rewards on the server, which is
        faster on an accelerator than in the actors. The memory of each
        environment takes `memory_capacity * embedding_size` floats.
    """
    self._agent = agent
    self._behaviors = agent.behavior_params()
    self._group_size = group_size
    self._num_groups = np.size(epsilons) // group_size
    self._core = grouped_core.GroupedCore(
      agent, group_size=group_size, rewards=rewards
    )
    # Padding uses an additional group, which does not belong to any actor.
    self._state, self._rewards = self._core.init(
      np.append(epsilons, np.zeros(group_size)), seed
    )
    self._start, step = batched_core.jit_functions(self._core)
    self._compiler = futures.ThreadPoolExecutor(1)
    self._step = _CompiledSteps(step, self._num_groups, self._compiler)
    self._params: Any = None
    self._changed = threading.Condition()
    self._requests: dict[int, InferenceRequest] = {}  # By group.
    self._restored: list[tuple[int, Any]] = []
    self._stopped = False

  def warm_up(self) -> None:
    """Starts to compile in the background, before the first parameters arrive.

    Otherwise, the first requests start it. They also do so for `step` if the
    host inputs of a behavior have unknown shapes.
    """
    spec, size, shape = self._agent.spec, self._group_size, jax.ShapeDtypeStruct
    params, *states = self._core.shapes((self._num_groups + 1) * size)
    stack = shape((size, *spec.observation_shape), np.uint8)
    group, is_first = shape((), np.int32), shape((size,), bool)
    start = self._compiler.submit(
      _compile, self._start, (params, group, is_first, stack, states[0])
    )
    self._start = lambda *args: start.result()(*args)
    num = self._step.max_size
    inputs = batched_core.input_shapes(self._agent, num * size)
    if inputs is not None:
      self._step.compile(params, shape((num,), np.int32), inputs, *states)

  def update_variables(self, variables: assembly.Variables) -> None:
    """Replaces the parameters; called from the serving thread."""
    is_first_update = self._params is None
    self._params = self._core.batched.arrange(variables, self._behaviors)
    if is_first_update:
      self._state = self._core.batched.with_embedding(self._params, self._state)

  def restore_statistics(
    self, group: int, statistics: statistics_store.Statistics
  ) -> None:
    """Schedules statistics to restore for a group; called from any thread.

    Args:
      group: the group's index.
      statistics: the group's running statistics, float [G] each.
    """
    with self._changed:
      self._restored.append((group, statistics))

  def act(
    self,
    group: int,
    inputs: batched_core.PolicyInput,
    stack: np.ndarray | None,
  ) -> tuple[np.ndarray, batched_core.Extras]:
    """Selects actions for one group; called by `RemotePolicy` in any thread.

    Args:
      group: the group's index; its environments start at group * G.
      inputs: the inputs of `BatchedCore.step`, [G, ...].
      stack: uint8 [G, H, W, C * S], the whole observations if an episode starts
        in any of the environments; else None.

    Returns:
      Actions int32 [G] and extras [G, ...].

    Raises:
      RuntimeError: if the server has stopped, or if a newer request of the same
        group has replaced this one.
    """
    request = InferenceRequest(group, inputs, stack)
    with self._changed:
      # A failed actor may have left a pending request of the same group.
      replaced = self._requests.pop(group, None)
      if replaced is not None:
        replaced.answered.set()
      if self._stopped:
        request.answered.set()
      else:
        self._requests[group] = request
        self._changed.notify()
    request.answered.wait()
    if request.answer is None:
      raise RuntimeError(
        f'Request of group {group} failed: the inference server has stopped, '
        'or a newer request has replaced this one.'
      )
    return request.answer

  def serve(self, timeout_s: float) -> int:
    """Answers all pending requests in one call.

    Args:
      timeout_s: maximum time to wait for the first request, in seconds.

    Returns:
      The number of answered requests.
    """
    with self._changed:
      self._changed.wait_for(lambda: self._requests, timeout_s)
      requests = list(self._requests.values())
      self._requests.clear()
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
      for request in self._requests.values():
        request.answered.set()
      self._requests.clear()
    # The compilation that has started ends first.
    self._compiler.shutdown(cancel_futures=True)

  def answer(self, requests: list[InferenceRequest]) -> None:
    """Answers at most one request of each group in one call.

    Called from the serving thread.
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
    count = self._step.size(len(requests))
    padded = requests + requests[:1] * (count - len(requests))
    groups = np.full(count, self._num_groups, np.int32)
    groups[: len(requests)] = [request.group for request in requests]
    action, extras, self._state, self._rewards = self._step(
      self._params,
      groups,
      jax.tree.map(
        lambda *leaves: np.concatenate(leaves),
        *(request.inputs for request in padded),
      ),
      self._state,
      self._rewards,
    )
    # All transfers start before the first one is awaited.
    answer = jax.device_get((action, extras))
    for i, request in enumerate(requests):
      part = slice(i * self._group_size, (i + 1) * self._group_size)
      request.answer = jax.tree.map(lambda x, part=part: x[part], answer)

  def _restore(
    self, group: int, statistics: statistics_store.Statistics
  ) -> None:
    if not self._rewards:
      return  # The actors compute the rewards.
    start = group * self._group_size
    # Only agents in pre-training restore statistics, and they have one reward.
    (state,) = self._rewards
    restored = jax.tree.map(
      lambda x, y: x.at[start : start + self._group_size].set(y),
      state.statistics,
      type(state.statistics)(*statistics),
    )
    self._rewards = (state._replace(statistics=restored),)


class RemotePolicy:
  """Selects the actions of one group on a server.

  Only the server has parameters and a state.
  """

  def __init__(self, server: Any, group: int, frame_channels: int):
    """Initializes the policy without contacting the server.

    Args:
      server: a courier.Client of an `InferenceServer`.
      group: index of the group at the server.
      frame_channels: C, channels of one frame.
    """
    # Deleting the client during a pending call would end the process.
    self._server = server
    self._group = group
    self._channels = frame_channels
    self._future: Any = None

  def restore_statistics(self, statistics: statistics_store.Statistics) -> None:
    """Restores the statistics of the group on the server."""
    self._server.restore_statistics(self._group, statistics)

  def request(self, inputs: batched_core.PolicyInput) -> None:
    """Requests actions without waiting for them."""
    observation = inputs.observation
    self._future = self._server.futures.act(
      self._group,
      inputs._replace(
        observation=frame_stacking.newest_frame(observation, self._channels)
      ),
      np.ascontiguousarray(observation) if inputs.is_first.any() else None,
    )

  def receive(self) -> tuple[np.ndarray, batched_core.Extras]:
    """Waits for actions and extras; see `VectorPolicy.receive`.

    Returns:
      Actions, int32 [G], and extras [G, ...].

    Raises:
      ConnectionError: if the server does not answer.
    """
    try:
      action, extras = self._future.result()
    except Exception as error:  # Courier has a separate class for each cause.
      raise ConnectionError(
        f'The inference server does not answer: {error}'
      ) from error
    return np.array(action), extras
