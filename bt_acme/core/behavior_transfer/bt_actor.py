"""BT acting: flights and the extra action around any actor core.

Source: Campos et al. 2021 (arXiv:2102.13515), Alg. 1. Differs from the paper:
several behaviors may take part, each with an extra action of its own. With one
behavior this is the paper's agent.
"""

import functools
from typing import Any, Dict, NamedTuple, Sequence, Tuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bt_acme import config as config_lib
from bt_acme.core import r2d2_actor, types
from bt_acme.core.behavior_transfer import behavior_core, flights


class BTParams(NamedTuple):
  """Parameters of the agent and of its K behaviors, which are never trained."""

  agent: types.Params
  behaviors: Tuple[types.Params, ...]


class BTInput(NamedTuple):
  """The agent's input, and what the hosts of the K behaviors supply."""

  agent: types.AgentInput
  host_inputs: Tuple[Any, ...]


class Resolution(NamedTuple):
  """What became of a choice.

  Attributes:
    action: int32 [], one of A, which the environment receives.
    choice: int32 [], one of A + K, which the values are trained on.
    source: uint8 [], OWN, EXTRA or FLIGHT: who decided the action.
  """

  action: jax.Array
  choice: jax.Array
  source: jax.Array


class BTActorState(NamedTuple):
  """One environment's actor; the last three describe the step just taken.

  Attributes:
    key: the key for the steps to come.
    agent: the state of the agent's actor core.
    behaviors: the state of each of the K behaviors.
    flight: where the environment is in its flight, after the step.
    flight_step: how the step relates to a flight.
    proposals: int32 [K], what each behavior would do.
    resolution: what became of the agent's choice.
  """

  key: jax.Array
  agent: Any
  behaviors: Tuple[Any, ...]
  flight: flights.FlightState
  flight_step: flights.FlightStep
  proposals: jax.Array
  resolution: Resolution


class _Parts(NamedTuple):
  """What does not change while an actor core acts.

  Attributes:
    agent: the actor core that behavior transfer is put around.
    behaviors: the K behaviors.
    config: the settings of flights and extra actions.
    num_actions: A, the number of actions.
    weights: K weights with which a flight draws its behavior; at most 1.
    survival: float32 [max_flight_length - 1], what `flights.survival` returns.
    use_flights: whether flights start at all.
  """

  agent: types.ActorCore
  behaviors: Tuple[behavior_core.BehaviorCore, ...]
  config: config_lib.TransferConfig
  num_actions: int
  weights: Tuple[float, ...]
  survival: npt.NDArray[np.float32]
  use_flights: bool

  @property
  def by_epsilon(self) -> bool:
    """Whether the agent's epsilon starts flights instead of random actions."""
    return self.use_flights and self.config.flight_probability == 'epsilon'


def resolve(
  choice: jax.Array,
  proposals: jax.Array,
  flight: flights.FlightStep,
  *,
  num_actions: int,
  extra_action: bool,
) -> Resolution:
  """Turns the agent's choice into the action that the environment receives.

  Args:
    choice: int32 [], one of A + K with extra actions, else one of A.
    proposals: int32 [K], what the behaviors would do.
    flight: whether a behavior has control.
    num_actions: A, the number of actions.
    extra_action: whether choices from A on stand for behaviors. If so, a
      flight's steps are labelled as the choice of its behavior, because that
      choice would have had the same outcome.

  Returns:
    The action, its label, and who decided it.
  """
  delegates = choice >= num_actions
  behavior = jnp.where(
    flight.in_flight, flight.behavior, jnp.maximum(choice - num_actions, 0)
  )
  proposal = proposals[behavior]
  action = jnp.where(flight.in_flight | delegates, proposal, choice)
  flight_label = num_actions + flight.behavior if extra_action else proposal
  return Resolution(
    action=action.astype(jnp.int32),
    choice=jnp.where(flight.in_flight, flight_label, choice).astype(jnp.int32),
    source=jnp.where(
      flight.in_flight,
      types.FLIGHT,
      jnp.where(delegates, types.EXTRA, types.OWN),
    ).astype(jnp.uint8),
  )


def wrap(
  actor_core: types.ActorCore,
  behaviors: Sequence[behavior_core.BehaviorCore],
  config: config_lib.TransferConfig,
  *,
  num_actions: int,
  behavior_weights: Sequence[float] = (),
  evaluation: bool = False,
) -> types.ActorCore:
  """Puts behavior transfer around an actor core.

  The agent and every behavior see every step, whether or not they decide it: a
  recurrent state that skipped a flight would describe an episode that never
  was. If the configuration still has the agent's state held in flights, the
  learner's unroll holds it too, and if it has behaviors restart with a flight,
  they see the steps since their last one.

  Args:
    actor_core: the agent's actor core. It chooses among A + K with extra
      actions, where K is the number of behaviors, else among A.
    behaviors: the K behaviors.
    config: the settings of flights and extra actions.
    num_actions: A, the number of actions.
    behavior_weights: K weights with which a flight draws its behavior; uniform
      if empty.
    evaluation: whether to leave flights out; the extra action stays.

  Returns:
    An actor core over `BTParams` and `BTInput`. Its `init` passes on what
    follows the key: an epsilon, if that starts flights.

  Raises:
    ValueError: if there is no behavior, if the weights do not fit the
      behaviors, or if the agent must hold its recurrent state and cannot.
  """
  _check(actor_core, behaviors, config)
  parts = _Parts(
    agent=actor_core,
    behaviors=tuple(behaviors),
    config=config,
    num_actions=num_actions,
    weights=flights.relative_weights(behavior_weights, len(behaviors)),
    survival=flights.survival(config.flight_exponent, config.max_flight_length),
    use_flights=config.flights and not evaluation,
  )
  return types.ActorCore(
    init=functools.partial(_init, parts),
    select_action=functools.partial(_select_action, parts),
    get_extras=functools.partial(_get_extras, parts),
  )


def _check(
  actor_core: types.ActorCore,
  behaviors: Sequence[behavior_core.BehaviorCore],
  config: config_lib.TransferConfig,
) -> None:
  if not behaviors:
    raise ValueError(
      'behaviors=[] leaves nothing to transfer: give at least one behavior, or '
      'use the agent without behavior transfer.'
    )
  if config.flight_recurrent_state == 'hold' and actor_core.hold is None:
    raise ValueError(
      "flight_recurrent_state='hold' needs an agent whose actor and learner "
      "can hold its recurrent state, such as agents.R2D2Builder's: choose "
      "'advance'."
    )


def _new_flight(parts: _Parts, key: types.PRNGKey) -> flights.FlightState:
  return flights.new_episode(
    key,
    min_probability=parts.config.min_flight_probability,
    max_probability=parts.config.max_flight_probability,
  )


def _init(parts: _Parts, key: types.PRNGKey, *settings: Any) -> BTActorState:
  key, agent_key, flight_key, behavior_key = jax.random.split(key, 4)
  flight = _new_flight(parts, flight_key)
  if parts.by_epsilon:
    if len(settings) != 1:
      raise ValueError(
        "flight_probability='epsilon' needs an agent with an epsilon of its "
        "own, such as agents.R2D2Builder's: choose 'log_uniform'."
      )
    flight = flight._replace(
      start_probability=jnp.asarray(settings[0], jnp.float32)
    )
    # The agent itself is greedy: it explores by flights alone.
    settings = (jnp.zeros_like(flight.start_probability),)
  zero = jnp.zeros([], jnp.int32)
  return BTActorState(
    key=key,
    agent=parts.agent.init(agent_key, *settings),
    behaviors=tuple(
      behavior.init(jax.random.fold_in(behavior_key, i))
      for i, behavior in enumerate(parts.behaviors)
    ),
    flight=flight,
    flight_step=flights.no_flight(flight),
    proposals=jnp.zeros([len(parts.behaviors)], jnp.int32),
    resolution=Resolution(zero, zero, jnp.zeros([], jnp.uint8)),
  )


def _select_action(
  parts: _Parts, params: BTParams, inputs: BTInput, state: BTActorState
) -> Tuple[jax.Array, BTActorState]:
  key, episode_key, flight_key = jax.random.split(state.key, 3)
  flight_step, flight = _step_flight(
    parts, inputs.agent.is_first, state.flight, episode_key, flight_key
  )
  choice, agent = parts.agent.select_action(
    params.agent, inputs.agent, state.agent
  )
  hold = parts.agent.hold
  if parts.config.flight_recurrent_state == 'hold' and hold is not None:
    agent = hold(agent, flight_step.in_flight)
  proposals, behaviors = _propose(
    parts, params.behaviors, inputs, flight_step, state.behaviors
  )
  resolution = resolve(
    choice,
    proposals,
    flight_step,
    num_actions=parts.num_actions,
    extra_action=parts.config.extra_action,
  )
  return resolution.action, BTActorState(
    key=key,
    agent=agent,
    behaviors=behaviors,
    flight=flight,
    flight_step=flight_step,
    proposals=proposals,
    resolution=resolution,
  )


def _step_flight(
  parts: _Parts,
  is_first: jax.Array,
  flight: flights.FlightState,
  episode_key: types.PRNGKey,
  flight_key: types.PRNGKey,
) -> Tuple[flights.FlightStep, flights.FlightState]:
  """Ends a flight with its episode, and advances any other by one step."""
  fresh = _new_flight(parts, episode_key)
  if parts.by_epsilon:  # Epsilon stays the same.
    fresh = fresh._replace(start_probability=flight.start_probability)
  flight = r2d2_actor.where_first(is_first, fresh, flight)
  if not parts.use_flights:
    return flights.no_flight(flight), flight
  return flights.step(
    flight, flight_key, jnp.asarray(parts.survival), parts.weights
  )


def _propose(
  parts: _Parts,
  params: Tuple[types.Params, ...],
  inputs: BTInput,
  flight_step: flights.FlightStep,
  states: Tuple[Any, ...],
) -> Tuple[jax.Array, Tuple[Any, ...]]:
  """Returns what each behavior would do, int32 [K], and their new states."""
  proposals, new_states = [], []
  restarts = parts.config.flight_behavior_state == 'restart'
  for i, behavior in enumerate(parts.behaviors):
    starts_flight = flight_step.starts & (flight_step.behavior == i)
    begins = starts_flight & restarts
    proposal, new_state = behavior.step(
      params[i],
      behavior_core.BehaviorInput(
        observation=inputs.agent.observation,
        prev_action=jnp.where(
          begins, types.NO_ACTION, inputs.agent.prev_action
        ),
        is_first=inputs.agent.is_first | begins,
        starts_flight=starts_flight,
        host_inputs=inputs.host_inputs[i],
      ),
      states[i],
    )
    proposals.append(proposal)
    new_states.append(new_state)
  return jnp.stack(proposals).astype(jnp.int32), tuple(new_states)


def _get_extras(parts: _Parts, state: BTActorState) -> Dict[str, Any]:
  extras = dict(parts.agent.get_extras(state.agent))
  in_flight = state.flight_step.in_flight
  if 'probability' in extras:  # A flight's action was certain.
    extras['probability'] = jnp.where(in_flight, 1.0, extras['probability'])
  features = (
    behavior.features(behavior_state)
    for behavior, behavior_state in zip(
      parts.behaviors, state.behaviors, strict=True
    )
  )
  probability = state.flight.start_probability
  return {
    **extras,
    'choice': state.resolution.choice,
    'source': state.resolution.source,
    'flight_length': state.flight_step.length,
    'flight_probability': (
      probability if parts.use_flights else jnp.zeros_like(probability)
    ),
    'proposals': state.proposals,
    'features': tuple(features),
  }
