"""The jitted side of acting: one call chooses for many environments.

`VectorPolicy` runs in the actor's own process. With `InferenceServer` one
process, on the accelerator, chooses for all actors, which then only emulate,
and call it by `RemotePolicy` (Espeholt et al. 2020, SEED RL). Either way what
varies between environments (epsilon, recurrent state, flights, behaviors'
state) is kept here per environment and seeded by its index alone.

Observations reach the device as their newest frame: the stack is kept there.
"""

import threading
from typing import Any, Dict, List, NamedTuple, Optional, Protocol, Tuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bt_acme import assembly
from bt_acme import config as config_lib
from bt_acme.core import types
from bt_acme.core.behavior_transfer import bt_actor
from bt_acme.core.intrinsic import ngu_actor
from bt_acme.core.intrinsic import reward as reward_lib

Extras = Dict[str, Any]


class PolicyInput(NamedTuple):
  """What N environments show, and what the host adds.

  Attributes:
    observation: uint8 [N, H, W, C * S]; () where it travels apart.
    prev_action: int32 [N], executed before; -1 on first steps.
    prev_reward: float32 [N], received before; 0 on first steps.
    is_first: bool [N].
    is_last: bool [N].
    feeds: of each behavior's host side, trees of arrays [N, ...].
  """

  observation: Any
  prev_action: np.ndarray
  prev_reward: np.ndarray
  is_first: np.ndarray
  is_last: np.ndarray
  feeds: Tuple[Any, ...]


class Policy(Protocol):
  """Chooses actions for N environments; a request before each receive."""

  def update_variables(self, variables: assembly.Variables) -> None:
    """Acts with these parameters from now on; an embedding, from the next
    episode of each environment on."""

  def restore_statistics(
    self, statistics: reward_lib.IntrinsicStatistics
  ) -> None:
    """Goes on from these, [N], where it makes intrinsic rewards as well."""

  def request(self, inputs: PolicyInput) -> None:
    """Starts to choose, without waiting."""

  def receive(self) -> Tuple[np.ndarray, Extras]:
    """Waits for actions, int32 [N], and the actor core's extras [N, ...]."""


class _State(NamedTuple):
  """Of N environments.

  Attributes:
    core: of the actor core.
    observation: uint8 [N, H, W, C * S], the last one.
    embedding: NGU's parameters [N, ...], each of its episode's start; or ().
  """

  core: Any
  observation: jax.Array
  embedding: Any


class _Functions(NamedTuple):
  """Acting in any number of environments, as pure functions.

  Attributes:
    init: (epsilons [N], seed, first environment) -> _State without embedding.
    start: (parameters, is_first [N], observation, _State) -> _State in which
      episodes start where they do, ahead of `step`.
    step: (parameters, newest frame [N, H, W, C], PolicyInput without its
      observation, _State) -> (action [N], extras, _State).
  """

  init: Any
  start: Any
  step: Any


def _make_functions(
  agent: assembly.Agent, *, evaluation: bool = False
) -> _Functions:
  core = agent.actor_core(evaluation=evaluation)
  channels = agent.spec.frame_channels
  is_bt = isinstance(agent.config, config_lib.BTConfig)
  is_ngu = isinstance(agent.config, config_lib.NGUConfig)
  axes: Any = None
  if is_ngu:
    axes = ngu_actor.NGUParams(agent=None, embedding=0, rnd=None)

  def init(
    epsilons: npt.ArrayLike, seed: int, first_environment: int
  ) -> _State:
    epsilons = jnp.asarray(epsilons, jnp.float32)
    key, num = jax.random.key(seed), len(epsilons)
    keys = jax.vmap(lambda i: jax.random.fold_in(key, i))(
      jnp.arange(first_environment, first_environment + num)
    )
    return _State(
      core=jax.vmap(core.init)(keys, epsilons),
      observation=jnp.zeros((num, *agent.spec.observation_shape), jnp.uint8),
      embedding=(),
    )

  def start(
    params: Any, is_first: jax.Array, observation: jax.Array, state: _State
  ) -> _State:
    # `step` appends the newest frame: one place is left for it.
    older = jnp.roll(observation, channels, axis=-1)
    embedding = state.embedding
    if is_ngu:
      embedding = ngu_actor.where_first(is_first, params.embedding, embedding)
    mask = is_first.reshape(-1, 1, 1, 1)
    return state._replace(
      observation=jnp.where(mask, older, state.observation),
      embedding=embedding,
    )

  def step(
    params: Any, newest: jax.Array, inputs: Any, state: _State
  ) -> Tuple[jax.Array, Extras, _State]:
    observation = jnp.concatenate(
      [state.observation[..., channels:], newest], axis=-1
    )
    core_inputs: Any = types.AgentInput(
      observation, inputs.prev_action, inputs.prev_reward, inputs.is_first
    )
    if is_bt:
      core_inputs = bt_actor.BTInput(core_inputs, inputs.feeds)
    if is_ngu:
      params = params._replace(embedding=state.embedding)
    action, core_state = jax.vmap(core.select_action, in_axes=(axes, 0, 0))(
      params, core_inputs, state.core
    )
    extras = jax.vmap(core.get_extras)(core_state)
    return action, extras, _State(core_state, observation, state.embedding)

  return _Functions(init, start, step)


class _Parameters:
  """Published variables as the actor core takes them, on the device."""

  def __init__(self, agent: assembly.Agent):
    self._config = agent.config
    self._behaviors = tuple(
      jax.device_put(behavior.params()) for behavior in agent.behaviors
    )

  def arrange(self, variables: assembly.Variables) -> Any:
    variables = jax.device_put(variables)
    if isinstance(self._config, config_lib.NGUConfig):
      return assembly.ngu_params(variables)
    if isinstance(self._config, config_lib.BTConfig):
      return bt_actor.BTParams(variables.agent, self._behaviors)
    return variables.agent


def _with_embedding(state: _State, params: Any, num: int) -> _State:
  """The state with the first parameters' embedding, where there is one."""
  if not isinstance(params, ngu_actor.NGUParams):
    return state
  return state._replace(embedding=_repeat(params.embedding, num))


def _repeat(one: Any, num: int) -> Any:
  return jax.tree.map(lambda x: jnp.repeat(x[None], num, axis=0), one)


def _intrinsic_rewards(agent: assembly.Agent) -> Tuple[Any, ...]:
  """By feature that acting gives out: (config, statistics to start from)."""
  if isinstance(agent.config, config_lib.NGUConfig):
    return ((agent.config.intrinsic, None),)
  rewards = tuple(behavior.intrinsic() for behavior in agent.behaviors)
  return rewards if any(rewards) else ()


def _reward(
  configs: Tuple[Optional[config_lib.IntrinsicConfig], ...],
  features: Any,
  inputs: PolicyInput,
  states: Tuple[Any, ...],
  rows: jax.Array,
) -> Tuple[Any, Tuple[Any, ...]]:
  """`ngu.Rewarded` in place of features, where a reward is made of them.

  Args:
    configs: of the rewards; None where there is none.
    features: of an actor core's extras: a behavior's each, or the agent's own.
    inputs: that they were made of.
    states: of the rewards, [M, ...].
    rows: int32 [N], which of the M environments these are.

  Returns:
    What takes the features' place, and the states behind it.
  """
  own = isinstance(features, ngu_actor.Features)
  taken, after = [], []
  for config, given, state in zip(
    configs, (features,) if own else features, states, strict=True
  ):
    if config is not None:
      given, state = reward_lib.step_rows(
        config,
        state,
        rows,
        given.embedding,
        given.error,
        jnp.asarray(inputs.is_first),
        jnp.asarray(inputs.is_last),
      )
    taken.append(given)
    after.append(state)
  return taken[0] if own else tuple(taken), tuple(after)


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
      agent: what acts.
      epsilons: [N], one an environment.
      seed: of the run.
      first_environment: index of the first environment in the whole run, which
        seeds it together with `seed`.
      evaluation: leaves flights out.
    """
    functions = _make_functions(agent, evaluation=evaluation)
    self._channels = agent.spec.frame_channels
    self._num = np.size(epsilons)
    self._state = functions.init(epsilons, seed, first_environment)
    self._step = jax.jit(functions.step, donate_argnums=3)
    self._start = jax.jit(functions.start, donate_argnums=3)
    self._parameters = _Parameters(agent)
    self._params: Any = None
    self._pending: Any = None

  def update_variables(self, variables: assembly.Variables) -> None:
    first = self._params is None
    self._params = self._parameters.arrange(variables)
    if first:
      self._state = _with_embedding(self._state, self._params, self._num)

  def restore_statistics(
    self, statistics: reward_lib.IntrinsicStatistics
  ) -> None:
    del statistics  # The host makes the rewards.

  def request(self, inputs: PolicyInput) -> None:
    if self._params is None:
      raise RuntimeError('update_variables must come before select_actions.')
    observation = inputs.observation
    newest = np.ascontiguousarray(observation[..., -self._channels :])
    if inputs.is_first.any():
      self._state = self._start(
        self._params, inputs.is_first, observation, self._state
      )
    *self._pending, self._state = self._step(
      self._params, newest, inputs._replace(observation=()), self._state
    )

  def receive(self) -> Tuple[np.ndarray, Extras]:
    action, extras = self._pending
    return np.array(action), jax.tree.map(np.asarray, extras)


class Request:
  """A group's, waiting for its answer.

  Attributes:
    answer: actions and extras, as `InferenceServer.act` returns them.
  """

  def __init__(
    self,
    group: int,
    newest: np.ndarray,
    inputs: PolicyInput,
    stack: Optional[np.ndarray],
  ):
    """Takes what `InferenceServer.act` does."""
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

  With `rewards` the same call makes the intrinsic rewards, those of behaviors
  too, and the device holds all episodic memories: the features of an answer are
  then `ngu.Rewarded`, and actors have nothing to do but to emulate.
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
      agent: what acts.
      epsilons: [M], of all environments.
      seed: of the run.
      group_size: G, environments that ask together; divides M.
      rewards: whether to make intrinsic rewards here, which an accelerator does
        faster than the actors; each environment's memory takes
        `memory_capacity * embedding_size` floats.
    """
    num = np.size(epsilons)
    if num % group_size:
      raise ValueError(
        f'group_size={group_size} does not divide {num} environments.'
      )
    self._group_size = group_size
    self._num_groups = num // group_size
    functions = _make_functions(agent)
    # One group more is where padding acts.
    self._num = num + group_size
    self._state = functions.init(
      np.append(epsilons, np.zeros(group_size)), seed, 0
    )
    made = _intrinsic_rewards(agent) if rewards else ()
    configs = tuple(reward and reward[0] for reward in made)
    self._intrinsic: Tuple[Any, ...] = tuple(
      () if reward is None else _repeat(reward_lib.init(*reward), self._num)
      for reward in made
    )
    self._parameters = _Parameters(agent)
    self._params: Any = None
    self._changed = threading.Condition()
    self._requests: List[Request] = []
    self._restored: List[Tuple[int, reward_lib.IntrinsicStatistics]] = []
    self._stopped = False

    def rows(groups: jax.Array) -> jax.Array:
      starts = groups[:, None] * group_size
      return (starts + jnp.arange(group_size)).reshape(-1)

    def start(
      params: Any, group: Any, is_first: Any, stack: Any, state: _State
    ) -> _State:
      where = rows(group[None])
      part = jax.tree.map(lambda x: x[where], state)
      part = functions.start(params, is_first, stack, part)
      return jax.tree.map(lambda x, y: x.at[where].set(y), state, part)

    def step(
      params: Any,
      groups: Any,
      newest: Any,
      inputs: PolicyInput,
      state: _State,
      intrinsic: Tuple[Any, ...],
    ) -> Tuple[jax.Array, Extras, _State, Tuple[Any, ...]]:
      where = rows(groups)
      part = jax.tree.map(lambda x: x[where], state)
      action, extras, part = functions.step(params, newest, inputs, part)
      if intrinsic:
        rewarded, intrinsic = _reward(
          configs, extras['features'], inputs, intrinsic, where
        )
        extras = {**extras, 'features': rewarded}
      # The embedding changes where an episode starts alone.
      written = jax.tree.map(
        lambda x, y: x.at[where].set(y),
        (state.core, state.observation),
        (part.core, part.observation),
      )
      state = _State(written[0], written[1], state.embedding)
      return action, extras, state, intrinsic

    self._start = jax.jit(start, donate_argnums=4)
    self._step = jax.jit(step, donate_argnums=(4, 5))

  def update_variables(self, variables: assembly.Variables) -> None:
    """As `Policy.update_variables`; from the thread that serves."""
    first = self._params is None
    self._params = self._parameters.arrange(variables)
    if first:
      self._state = _with_embedding(self._state, self._params, self._num)

  def restore_statistics(
    self, group: int, statistics: reward_lib.IntrinsicStatistics
  ) -> None:
    """Has a group's intrinsic rewards go on from these; from any thread.

    Args:
      group: its index.
      statistics: float [G].
    """
    with self._changed:
      self._restored.append((group, statistics))

  def act(
    self,
    group: int,
    newest: np.ndarray,
    inputs: PolicyInput,
    stack: Optional[np.ndarray],
  ) -> Tuple[np.ndarray, Extras]:
    """Chooses for one group; called by `RemotePolicy`, from any thread.

    Args:
      group: its index: environments group * G and on.
      newest: uint8 [G, H, W, C].
      inputs: without their observation.
      stack: uint8 [G, H, W, C * S], the whole observation where an episode
        starts in any of the environments; else None.

    Returns:
      Actions int32 [G] and extras [G, ...].

    Raises:
      RuntimeError: if the server has stopped.
    """
    request = Request(group, newest, inputs, stack)
    with self._changed:
      if not self._stopped:
        self._requests.append(request)
        self._changed.notify()
      else:
        request.answered.set()
    request.answered.wait()
    if request.answer is None:
      raise RuntimeError('The inference server has stopped.')
    answer: Tuple[np.ndarray, Extras] = request.answer
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
    finally:  # Or callers would wait for ever behind an error.
      for request in requests:
        request.answered.set()
    return len(requests)

  def stop(self) -> None:
    """Lets whoever waits or comes go away with an error."""
    with self._changed:
      self._stopped = True
      for request in self._requests:
        request.answered.set()
      self._requests = []

  def _restore(
    self, group: int, statistics: reward_lib.IntrinsicStatistics
  ) -> None:
    if not self._intrinsic:
      return  # The actors make the rewards.
    start = group * self._group_size
    (state,) = self._intrinsic  # Only a pre-training agent has its own.
    restored = jax.tree.map(
      lambda x, y: x.at[start : start + self._group_size].set(y),
      state.statistics,
      reward_lib.IntrinsicStatistics(*statistics),
    )
    self._intrinsic = (state._replace(statistics=restored),)

  def answer(self, requests: List[Request]) -> None:
    """Answers requests, one a group, in one call; from the serving thread."""
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

    def joined(*leaves: Any) -> np.ndarray:
      return np.concatenate(leaves)

    action, extras, self._state, self._intrinsic = self._step(
      self._params,
      groups,
      joined(*(request.newest for request in padded)),
      jax.tree.map(joined, *(request.inputs for request in padded)),
      self._state,
      self._intrinsic,
    )
    action, extras = jax.tree.map(np.asarray, (action, extras))
    for i, request in enumerate(requests):
      part = slice(i * self._group_size, (i + 1) * self._group_size)
      request.answer = jax.tree.map(
        lambda x, part=part: x[part], (action, extras)
      )


class RemotePolicy:
  """Has a server choose for one group."""

  def __init__(self, server: Any, group: int, frame_channels: int):
    """Calls nothing yet.

    Args:
      server: courier.Client of an `InferenceServer`.
      group: index of the group there.
      frame_channels: C, channels of one frame.
    """
    self._server = server  # A call to a client that is gone ends the process.
    self._group = group
    self._channels = frame_channels
    self._future: Any = None

  def update_variables(self, variables: assembly.Variables) -> None:
    raise RuntimeError('The server fetches its parameters itself.')

  def restore_statistics(
    self, statistics: reward_lib.IntrinsicStatistics
  ) -> None:
    self._server.restore_statistics(self._group, statistics)

  def request(self, inputs: PolicyInput) -> None:
    observation = inputs.observation
    self._future = self._server.futures.act(
      self._group,
      np.ascontiguousarray(observation[..., -self._channels :]),
      inputs._replace(observation=()),
      np.ascontiguousarray(observation) if inputs.is_first.any() else None,
    )

  def receive(self) -> Tuple[np.ndarray, Extras]:
    """As `Policy.receive`; raises ConnectionError if no answer comes."""
    try:
      action, extras = self._future.result()
    except Exception as error:  # Courier's own, one for each cause.
      raise ConnectionError(
        f'The inference server does not answer: {error}'
      ) from error
    return np.array(action), extras
