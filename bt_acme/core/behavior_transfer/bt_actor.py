"""BT acting: any actor core, with flights and the extra action around it.

Source: Campos et al. 2021 (arXiv:2102.13515), Alg. 1. Differs from the paper:
several behaviors may take part, each with an extra action of its own; with one
this is the paper's agent.
"""

from typing import Any, Dict, NamedTuple, Sequence, Tuple

import jax
import jax.numpy as jnp

from bt_acme import config as config_lib
from bt_acme.core import r2d2_actor, types
from bt_acme.core.behavior_transfer import behavior_core, flights


class BTParams(NamedTuple):
  """Parameters of the agent, and of its K behaviors, which stay as they are."""

  agent: types.Params
  behaviors: Tuple[types.Params, ...]


class BTInput(NamedTuple):
  """One environment's input, and what the host feeds each behavior."""

  agent: types.AgentInput
  feeds: Tuple[Any, ...]


class Resolution(NamedTuple):
  """What became of a choice."""

  action: jax.Array  # int32 [], one of A, for the environment
  choice: jax.Array  # int32 [], one of A + K, for the values
  source: jax.Array  # uint8 [], OWN, EXTRA or FLIGHT


class BTActorState(NamedTuple):
  """One environment's actor; the last three describe the step just taken."""

  key: jax.Array
  agent: Any
  behaviors: Tuple[Any, ...]
  flight: flights.FlightState
  flight_step: flights.FlightStep
  proposals: jax.Array  # int32 [K], what the behaviors would do
  resolution: Resolution


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
    num_actions: A.
    extra_action: whether choices from A on stand for behaviors; then a flight's
      steps are labelled as the choice of its behavior, since that choice would
      have had the same outcome.

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

  The agent and every behavior see every step, used or not: a recurrent state
  that skipped a flight would describe an episode that never was. Where the
  configuration has the agent's held in flights all the same, the learner's
  unroll holds it too.

  Args:
    actor_core: the agent's; with extra actions it chooses among A + K, K the
      number of behaviors, else among A.
    behaviors: K of them.
    config: of flights and extra actions.
    num_actions: A.
    behavior_weights: K weights with which a flight draws its behavior; uniform
      if empty.
    evaluation: leaves flights out; the extra action stays.

  Returns:
    An actor core over `BTParams` and `BTInput`, whose `init` passes what
    follows the key on: an epsilon, where that starts flights.
  """
  if not behaviors:
    raise ValueError(
      'behaviors=[] leaves nothing to transfer: give at least one behavior, or '
      'use the agent without behavior transfer.'
    )
  weights = tuple(behavior_weights) or (1.0,) * len(behaviors)
  if (
    len(weights) != len(behaviors)
    or not all(0 <= weight < float('inf') for weight in weights)
    or sum(weights) == 0
  ):
    raise ValueError(
      f'behavior_weights={weights} must be one weight of at least 0 for each '
      f'of {len(behaviors)} behaviors, and not all 0.'
    )
  if config.flight_recurrent_state == 'hold' and actor_core.hold is None:
    raise ValueError(
      "flight_recurrent_state='hold' needs an agent whose actor and learner "
      "can hold its recurrent state, such as agents.R2D2Builder's: choose "
      "'advance'."
    )
  # In float64: float32 has a smaller range.
  weights = tuple(weight / max(weights) for weight in weights)
  use_flights = config.flights and not evaluation
  by_epsilon = use_flights and config.flight_probability == 'epsilon'
  lengths = flights.survival(config.flight_exponent, config.max_flight_length)

  def new_flight(key: jax.Array) -> flights.FlightState:
    return flights.new_episode(
      key,
      min_probability=config.min_flight_probability,
      max_probability=config.max_flight_probability,
    )

  def grounded(state: flights.FlightState) -> flights.FlightStep:
    no = jnp.zeros([], bool)
    return flights.FlightStep(no, no, jnp.zeros([], jnp.int32), state.behavior)

  def init(key: types.PRNGKey, *settings: Any) -> BTActorState:
    key, agent_key, flight_key, behavior_key = jax.random.split(key, 4)
    flight = new_flight(flight_key)
    if by_epsilon:
      if len(settings) != 1:
        raise ValueError(
          "flight_probability='epsilon' needs an agent with an epsilon of its "
          "own, such as agents.R2D2Builder's: choose 'log_uniform'."
        )
      flight = flight._replace(
        start_probability=jnp.asarray(settings[0], jnp.float32)
      )
      settings = (jnp.zeros_like(flight.start_probability),)
    zero = jnp.zeros([], jnp.int32)
    return BTActorState(
      key=key,
      agent=actor_core.init(agent_key, *settings),
      behaviors=tuple(
        behavior.init(jax.random.fold_in(behavior_key, i))
        for i, behavior in enumerate(behaviors)
      ),
      flight=flight,
      flight_step=grounded(flight),
      proposals=jnp.zeros([len(behaviors)], jnp.int32),
      resolution=Resolution(zero, zero, jnp.zeros([], jnp.uint8)),
    )

  def select_action(
    params: BTParams, inputs: BTInput, state: BTActorState
  ) -> Tuple[jax.Array, BTActorState]:
    key, episode_key, flight_key = jax.random.split(state.key, 3)
    agent_input = inputs.agent
    fresh = new_flight(episode_key)
    if by_epsilon:  # It stays the same for the whole run.
      fresh = fresh._replace(start_probability=state.flight.start_probability)
    flight = r2d2_actor.where_first(agent_input.is_first, fresh, state.flight)
    if use_flights:
      flight_step, flight = flights.step(
        flight, flight_key, jnp.asarray(lengths), weights
      )
    else:
      flight_step = grounded(flight)

    choice, agent_state = actor_core.select_action(
      params.agent, agent_input, state.agent
    )
    if config.flight_recurrent_state == 'hold' and actor_core.hold is not None:
      agent_state = actor_core.hold(agent_state, flight_step.in_flight)
    proposed, behavior_states = [], []
    for i, behavior in enumerate(behaviors):
      proposal, behavior_state = behavior.step(
        params.behaviors[i],
        behavior_core.BehaviorInput(
          observation=agent_input.observation,
          prev_action=agent_input.prev_action,
          is_first=agent_input.is_first,
          starts_flight=flight_step.starts & (flight_step.behavior == i),
          feed=inputs.feeds[i],
        ),
        state.behaviors[i],
      )
      proposed.append(proposal)
      behavior_states.append(behavior_state)
    proposals = jnp.stack(proposed).astype(jnp.int32)
    resolution = resolve(
      choice,
      proposals,
      flight_step,
      num_actions=num_actions,
      extra_action=config.extra_action,
    )
    return resolution.action, BTActorState(
      key=key,
      agent=agent_state,
      behaviors=tuple(behavior_states),
      flight=flight,
      flight_step=flight_step,
      proposals=proposals,
      resolution=resolution,
    )

  def get_extras(state: BTActorState) -> Dict[str, Any]:
    extras = dict(actor_core.get_extras(state.agent))
    in_flight = state.flight_step.in_flight
    if 'probability' in extras:  # A flight's action was certain.
      extras['probability'] = jnp.where(in_flight, 1.0, extras['probability'])
    return {
      **extras,
      'choice': state.resolution.choice,
      'source': state.resolution.source,
      'flight_length': state.flight_step.length,
      'proposals': state.proposals,
      'features': tuple(
        behavior.features(behavior_state)
        for behavior, behavior_state in zip(
          behaviors, state.behaviors, strict=True
        )
      ),
    }

  return types.ActorCore(init, select_action, get_extras)
