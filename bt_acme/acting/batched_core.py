"""An agent's actor core for many environments, in one call on the device.

Everything that varies between environments (epsilon, recurrent state, flights,
the state of behaviors, the stack of frames) is stored per environment and
seeded only by the environment's index.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bt_acme import assembly
from bt_acme.acting import behavior as behavior_lib
from bt_acme.core import arrays, frame_stacking, networks, types
from bt_acme.core.behavior_transfer import bt_actor
from bt_acme.core.intrinsic import ngu_actor

Array = Any  # A NumPy array, or a JAX array inside a jitted call.
Extras = dict[str, Any]
# For each behavior, a tree of arrays [N, ...] in its host's own format.
HostInputs = tuple[Any, ...]
Tree = TypeVar('Tree')


class PolicyInput(NamedTuple):
  """The inputs of a policy in N environments, including host inputs.

  Attributes:
    observation: uint8 [N, H, W, C * S]; for `BatchedCore.step`, only the newest
      frame, [N, H, W, C].
    prev_action: int32 [N], the previous action; -1 on first steps.
    prev_reward: float32 [N], the previous reward; 0 on first steps.
    is_first: bool [N], whether an episode starts.
    is_last: bool [N], whether an episode ends.
    host_inputs: the inputs from each behavior's host side, trees [N, ...].
    flight_weights: float32 [N, K], the learned priorities of the behaviors; ()
      if they are constant.
  """

  observation: Array
  prev_action: Array
  prev_reward: Array
  is_first: Array
  is_last: Array
  host_inputs: HostInputs
  flight_weights: Any = ()


def input_shapes(agent: assembly.Agent, num: int) -> PolicyInput | None:
  """Returns shapes and dtypes of the inputs of `BatchedCore.step`.

  Args:
    agent: the agent that acts.
    num: N.

  Returns:
    The inputs; None if the host inputs of a behavior have unknown shapes.
  """

  def shape(dtype: npt.DTypeLike, *row: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((num, *row), dtype)

  if not all(map(behavior_lib.states_host_inputs, agent.behaviors)):
    return None
  hosts = tuple(one.host_input_shapes() for one in agent.behaviors)
  return PolicyInput(
    observation=shape(np.uint8, *agent.replay_layout.frame),
    prev_action=shape(np.int32),
    prev_reward=shape(np.float32),
    is_first=shape(bool),
    is_last=shape(bool),
    host_inputs=jax.tree.map(lambda x: shape(x.dtype, *x.shape), hosts),
    flight_weights=(
      shape(np.float32, len(agent.behaviors)) if agent.learns_priorities else ()
    ),
  )


class ActingState(NamedTuple):
  """The state of N environments.

  Attributes:
    core: the state of the actor core, arrays [N, ...].
    stack: uint8 [N, H, W, C * S], the last observation.
    embedding: parameters of NGU's embedding [N, ...] from the start of each
      environment's episode; () without an intrinsic reward, or if the caller
      stores them.
  """

  core: Any
  stack: jax.Array
  embedding: Any


class BatchedCore:
  """Acts in any number of environments; all methods are pure functions.

  Attributes:
    states: the arguments of `step` that are states.
    matmul_precision: the precision of the products in `step`.
  """

  states = ('state',)

  def __init__(self, agent: assembly.Agent, *, evaluation: bool = False):
    """Initializes the actor core.

    Args:
      agent: the agent that acts.
      evaluation: whether to disable flights.
    """
    self._agent = agent
    self.matmul_precision = agent.config.network.matmul_precision
    self._core = agent.actor_core(evaluation=evaluation)

  def init(
    self, epsilons: npt.ArrayLike, seed: int, first_environment: int
  ) -> ActingState:
    """Creates a state without an embedding; `with_embedding` adds it.

    Args:
      epsilons: epsilon of every environment, [N].
      seed: the run's seed.
      first_environment: index of the first environment in the whole run.

    Returns:
      The state of the N environments.
    """
    epsilons = jnp.asarray(epsilons, jnp.float32)
    key, num = jax.random.key(seed), len(epsilons)
    keys = jax.vmap(lambda i: jax.random.fold_in(key, i))(
      jnp.arange(first_environment, first_environment + num)
    )
    shape = (num, *self._agent.spec.observation_shape)
    return ActingState(
      core=jax.vmap(self._core.init)(keys, epsilons),
      stack=jnp.zeros(shape, jnp.uint8),
      embedding=(),
    )

  def arrange(
    self, variables: assembly.Variables, behaviors: tuple[types.Params, ...]
  ) -> types.Params:
    """Moves published variables to the device, arranged for the actor core.

    Args:
      variables: the variables.
      behaviors: the result of `Agent.behavior_params`. They are not part of
        this object, which equal agents share.
    """
    return self._agent.actor_params(jax.device_put(variables), behaviors)

  def with_embedding(
    self, params: types.Params, state: ActingState
  ) -> ActingState:
    """Returns the state with the current embedding for all environments."""
    if self._agent.intrinsic is None:
      return state
    return state._replace(embedding=repeat(params.embedding, len(state.stack)))

  def shapes(self, num: int) -> tuple[types.Params, ActingState]:
    """Returns shapes and dtypes of the parameters and of a whole state.

    Args:
      num: N, the number of environments.
    """

    def make(variables: assembly.Variables) -> tuple[Any, ActingState]:
      params = self.arrange(variables, self._agent.behavior_params())
      return params, self.with_embedding(params, self.init(np.zeros(num), 0, 0))

    return jax.eval_shape(make, self._agent.variable_shapes)

  def start(
    self,
    params: types.Params,
    is_first: jax.Array,
    observation: jax.Array,
    state: ActingState,
  ) -> ActingState:
    """Starts episodes; called before `step` with the same observations.

    Args:
      params: the parameters, as returned by `arrange`.
      is_first: bool [N], where an episode starts.
      observation: uint8 [N, H, W, C * S], used only where an episode starts.
      state: the state after the previous step.

    Returns:
      The new state.
    """
    embedding = state.embedding
    if embedding:
      select = jax.vmap(arrays.tree_where, in_axes=(0, None, 0))
      embedding = select(is_first, params.embedding, embedding)
    stack = frame_stacking.start(
      state.stack, is_first, observation, self._agent.spec.frame_channels
    )
    return ActingState(state.core, stack, embedding)

  def step(
    self,
    params: types.Params,
    inputs: PolicyInput,
    state: ActingState,
    embeddings: Sequence[types.Params] = (),
  ) -> tuple[jax.Array, Extras, ActingState]:
    """Selects an action in each environment.

    Args:
      params: the parameters, as returned by `arrange`.
      inputs: the inputs, with the newest frames as observation.
      state: the state before the step.
      embeddings: the N embeddings, if the state does not contain them.

    Returns:
      Actions int32 [N], the actor core's extras [N, ...], and the new state.
    """
    stack = frame_stacking.push(state.stack, inputs.observation)
    axes: Any = None
    if self._agent.intrinsic is not None:
      own = stack_trees(embeddings) if embeddings else state.embedding
      params = params._replace(embedding=own)
      axes = ngu_actor.NGUParams(agent=None, embedding=0, rnd=None)
    given: Any = types.AgentInput(
      stack, inputs.prev_action, inputs.prev_reward, inputs.is_first
    )
    if self._agent.transfer is not None:
      given = bt_actor.BTInput(given, inputs.host_inputs, inputs.flight_weights)
    action, core = jax.vmap(self._core.select_action, in_axes=(axes, 0, 0))(
      params, given, state.core
    )
    extras = jax.vmap(self._core.get_extras)(core)
    return action, extras, ActingState(core, stack, state.embedding)


def jit_functions(core: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
  """Compiles `start` and `step`, which then donate all their states.

  Args:
    core: a `BatchedCore` or a `GroupedCore`.
  """
  step = networks.at_precision(core.step, core.matmul_precision)
  return (
    jax.jit(core.start, donate_argnames='state'),
    jax.jit(step, donate_argnames=core.states),
  )


def stack_trees(trees: Sequence[Tree]) -> Tree:
  """Stacks the arrays of several trees along a new leading axis."""
  return jax.tree.map(lambda *x: jnp.stack(x), *trees)


def repeat(tree: Tree, num: int) -> Tree:
  """Repeats each array of a tree along a new leading axis."""
  return jax.tree.map(lambda x: jnp.repeat(x[None], num, axis=0), tree)
