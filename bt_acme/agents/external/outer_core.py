"""Behavior transfer's actor core around an agent that chooses elsewhere.

The core draws flights, asks the behaviors that run in JAX, and decides who
acts. The agent's choice comes with its input, because an external agent has an
actor of its own.
"""

import functools
from typing import Any, NamedTuple, Sequence, Tuple, cast

import jax
import numpy as np
from acme import specs
from acme.wrappers import observation_action_reward as oar

from bt_acme import config as config_lib
from bt_acme.acting import behavior as behavior_lib
from bt_acme.core import types
from bt_acme.core.behavior_transfer import behavior_core, bt_actor


def is_discrete(environment_spec: specs.EnvironmentSpec) -> bool:
  """Returns whether the environment's actions are discrete."""
  return isinstance(environment_spec.actions, specs.DiscreteArray)


def own_observation(observation: Any) -> Any:
  """Returns what the environment showed, without what Acme's OAR adds."""
  if isinstance(observation, oar.OAR):
    return observation.observation
  return observation


class CoreInput(NamedTuple):
  """A `types.AgentInput` with the choice made elsewhere; all [1, ...]."""

  observation: Any
  prev_action: np.ndarray  # int32
  is_first: np.ndarray  # bool
  choice: np.ndarray  # int32


class CoreStep(NamedTuple):
  """What the core made of one step of one environment; all [1, ...]."""

  resolution: bt_actor.Resolution
  behavior: Any  # int32, which behavior flies
  flight_length: Any  # int32, 0 unless a flight starts
  proposals: Any  # int32 [1, K]
  features: Tuple[Any, ...]


def _agent_core() -> types.ActorCore:
  """Makes the core of an agent whose choice comes with its input."""
  return types.ActorCore(
    init=lambda key: (),
    select_action=lambda params, inputs, state: (inputs.choice, state),
    get_extras=lambda state: {},
  )


def make_core(
  behaviors: Sequence[behavior_lib.Behavior],
  config: config_lib.TransferConfig,
  *,
  environment_spec: specs.EnvironmentSpec,
  behavior_weights: Sequence[float] = (),
  evaluation: bool = False,
) -> types.ActorCore:
  """Puts flights and the extra action around choices made elsewhere.

  With vector actions, the core decides only who acts; the vectors never pass
  through it.

  Raises:
    ValueError: if the configuration needs what an external agent lacks.
  """
  if is_discrete(environment_spec):
    num_actions = environment_spec.actions.num_values
    observation = own_observation(environment_spec.observations)
    cores = [
      behavior_lib.make_core(behavior, num_actions, observation)
      for behavior in behaviors
    ]
  else:
    num_actions = 1
    cores = [behavior_core.external() for _ in behaviors]
  core = bt_actor.wrap(
    _agent_core(),
    cores,
    config,
    num_actions=num_actions,
    behavior_weights=behavior_weights,
    evaluation=evaluation,
  )
  # Settings that do not fit would otherwise fail only when an actor starts.
  jax.eval_shape(core.init, jax.random.key(0))
  return core


def _step(
  core: types.ActorCore, params: bt_actor.BTParams, inputs: Any, state: Any
) -> Tuple[CoreStep, Any]:
  """Steps the core, over a leading dimension of 1."""
  _, state = jax.vmap(core.select_action, in_axes=(None, 0, 0))(
    params, inputs, state
  )
  extras = jax.vmap(core.get_extras)(state)
  step = CoreStep(
    state.resolution,
    state.flight_step.behavior,
    extras['flight_length'],
    extras['proposals'],
    extras['features'],
  )
  return step, state


class Runner:
  """The core of one environment, compiled, and its state."""

  def __init__(
    self, core: types.ActorCore, params: Tuple[Any, ...], key: jax.Array
  ):
    self._step = jax.jit(functools.partial(_step, core))
    self._params = bt_actor.BTParams((), params)
    self._state = jax.vmap(core.init)(key[None])

  def step(self, inputs: CoreInput, host_inputs: Tuple[Any, ...]) -> CoreStep:
    """Advances the environment by one step."""
    all_inputs = bt_actor.BTInput(cast(Any, inputs), host_inputs)
    step, self._state = self._step(self._params, all_inputs, self._state)
    return cast(CoreStep, jax.tree.map(np.asarray, step))
