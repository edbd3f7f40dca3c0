"""BT acting: adds flights and the extra action to any actor core.

Source: Campos et al. 2021 (arXiv:2102.13515), Alg. 1. Unlike in the paper,
there can be several behaviors, each with its own extra action. With one
behavior, the agent equals the paper's.
"""

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bt_acme import config as config_lib
from bt_acme.core import arrays, types
from bt_acme.core.behavior_transfer import (
  behavior_core,
  flight_laws,
  flights,
  skipping,
)


class BTParams(NamedTuple):
  """Parameters of the agent and of its K behaviors."""

  agent: types.Params
  behaviors: tuple[types.Params, ...]


class BTInput(NamedTuple):
  """The inputs of the agent, its behaviors and its flights.

  Attributes:
    agent: the agent's input.
    host_inputs: the host inputs of the K behaviors.
    flight_weights: float32 [K], the current weights for drawing the behavior of
      a flight; () for the constant weights.
  """

  agent: types.AgentInput
  host_inputs: tuple[Any, ...]
  flight_weights: Any = ()


class Resolution(NamedTuple):
  """The outcome of the agent's choice.

  Attributes:
    action: int32 [], the action that the environment receives, one of A.
    choice: int32 [], the label of the transition in training, one of A + K.
    source: uint8 [], the component that selected the action: OWN, EXTRA or
      FLIGHT.
  """

  action: jax.Array
  choice: jax.Array
  source: jax.Array


class BTActorState(NamedTuple):
  """The actor state of one environment.

  The last three fields describe the last step.

  Attributes:
    key: the random key for future steps.
    agent: the state of the agent's actor core.
    behaviors: the state of each of the K behaviors.
    flight: the state of the flight after the step.
    flight_step: the role of the step in a flight.
    proposals: int32 [K], the action proposed by each behavior.
    resolution: the outcome of the agent's choice.
  """

  key: jax.Array
  agent: Any
  behaviors: tuple[Any, ...]
  flight: flights.FlightState
  flight_step: flights.FlightStep
  proposals: jax.Array
  resolution: Resolution


class _Core(NamedTuple):
  """The constant parts of an actor core, and its functions.

  Attributes:
    agent: the wrapped actor core of the agent.
    behaviors: the K behaviors.
    config: the settings of flights and extra actions.
    num_actions: A, the number of actions.
    weights: K weights, each at most 1, for drawing the behavior of a flight,
      unless the input has others.
    extra_behaviors: the behavior of each extra action.
    proposers: the behaviors that process the steps; the others propose 0.
    occasional: the behaviors of these that process only the steps of episodes
      for which they are drawn.
    law: decides when flights start and end.
    use_flights: whether flights can start.
  """

  agent: types.ActorCore
  behaviors: tuple[behavior_core.BehaviorCore, ...]
  config: config_lib.TransferConfig
  num_actions: int
  weights: tuple[float, ...]
  extra_behaviors: tuple[int, ...]
  proposers: tuple[int, ...]
  occasional: tuple[int, ...]
  law: flights.FlightLaw
  use_flights: bool

  @property
  def by_epsilon(self) -> bool:
    """Whether the agent's epsilon starts flights instead of random actions."""
    return self.use_flights and self.config.flight_probability == 'epsilon'

  def init(self, key: types.PRNGKey, *settings: Any) -> BTActorState:
    key, agent_key, flight_key, behavior_key = jax.random.split(key, 4)
    flight = flights.new_episode(flight_key, self.config, self.law.init())
    if self.by_epsilon:
      if len(settings) != 1:
        raise ValueError(
          "flight_probability='epsilon' needs an agent with its own epsilon. "
          "Choose 'log_uniform', or use an agent such as agents.R2D2Builder's."
        )
      flight = flight._replace(
        start_probability=jnp.asarray(settings[0], jnp.float32)
      )
      # The agent itself is greedy and explores only through flights.
      settings = (jnp.zeros_like(flight.start_probability),)
    zero = jnp.zeros([], jnp.int32)
    return BTActorState(
      key=key,
      agent=self.agent.init(agent_key, *settings),
      behaviors=tuple(
        behavior.init(jax.random.fold_in(behavior_key, i))
        for i, behavior in enumerate(self.behaviors)
      ),
      flight=flight,
      flight_step=flights.no_flight(flight),
      proposals=jnp.zeros([len(self.behaviors)], jnp.int32),
      resolution=Resolution(zero, zero, jnp.zeros([], jnp.uint8)),
    )

  def select_action(
    self, params: BTParams, inputs: BTInput, state: BTActorState
  ) -> tuple[jax.Array, BTActorState]:
    key, episode_key, flight_key = jax.random.split(state.key, 3)
    choice, agent = self.agent.select_action(
      params.agent, inputs.agent, state.agent
    )
    q_values = self.agent.get_extras(agent).get('q_values', ())
    flight_step, flight = self._step_flight(
      inputs, q_values, state.flight, episode_key, flight_key
    )
    proposals, behaviors = self._propose(
      params.behaviors, inputs, flight_step, state.behaviors
    )
    resolution = self._resolve(choice, proposals, flight_step)
    if self.use_flights and self.law.ends is not None:
      ends = self.law.ends(q_values, resolution.choice)
      flight_step, flight = flights.end(flight_step, flight, ends)
      resolution = self._resolve(choice, proposals, flight_step)
    if self.use_flights and self.config.flight_epsilon:
      # Splitting a key may give the same keys as folding in 0, 1 and 2.
      explore_key = jax.random.fold_in(state.key, 3)
      epsilon = jnp.where(flight_step.in_flight, flight.epsilon, 0.0)
      resolution = self._explore(explore_key, epsilon, resolution)
    hold = self.agent.hold
    if self.config.flight_recurrent_state == 'hold' and hold is not None:
      agent = hold(agent, flight_step.in_flight)
    return resolution.action, BTActorState(
      key, agent, behaviors, flight, flight_step, proposals, resolution
    )

  def _step_flight(
    self,
    inputs: BTInput,
    q_values: Any,
    flight: flights.FlightState,
    episode_key: types.PRNGKey,
    flight_key: types.PRNGKey,
  ) -> tuple[flights.FlightStep, flights.FlightState]:
    """Ends the flight if an episode starts, then advances by one step."""
    fresh = flights.new_episode(episode_key, self.config, flight.law)
    if self.by_epsilon:  # Epsilon is the same for all episodes.
      fresh = fresh._replace(start_probability=flight.start_probability)
    is_first = inputs.agent.is_first
    flight = arrays.tree_where(is_first, fresh, flight)
    if not self.use_flights:
      return flights.no_flight(flight), flight
    is_fixed = isinstance(inputs.flight_weights, tuple)
    return flights.step(
      flight,
      flight_key,
      self.law,
      flights.FlightInput(is_first, inputs.agent.prev_reward, q_values),
      self.weights if is_fixed else inputs.flight_weights,
      is_first if self.config.draws_by_episode else None,
    )

  def _propose(
    self,
    params: tuple[types.Params, ...],
    inputs: BTInput,
    flight_step: flights.FlightStep,
    states: tuple[Any, ...],
  ) -> tuple[jax.Array, tuple[Any, ...]]:
    """Returns each behavior's proposed action, int32 [K], and its new state."""
    proposals = [jnp.zeros([], jnp.int32)] * len(self.behaviors)
    new_states = list(states)
    restarts = self.config.flight_behavior_state == 'restart'
    for i in self.proposers:
      starts_flight = flight_step.starts & (flight_step.behavior == i)
      begins = starts_flight & restarts
      step = self.behaviors[i].step
      if i in self.occasional:
        step = functools.partial(
          skipping.skip_where_idle(step), flight_step.behavior == i
        )
      proposals[i], new_states[i] = step(
        params[i],
        behavior_core.BehaviorInput(
          observation=inputs.agent.observation,
          prev_action=jnp.where(
            begins, types.NO_ACTION, inputs.agent.prev_action
          ),
          is_first=inputs.agent.is_first | begins,
          starts_flight=starts_flight,
          host_inputs=inputs.host_inputs[i],
          prev_reward=jnp.where(begins, 0, inputs.agent.prev_reward),
        ),
        states[i],
      )
    return jnp.stack(proposals).astype(jnp.int32), tuple(new_states)

  def _resolve(
    self,
    choice: jax.Array,
    proposals: jax.Array,
    flight: flights.FlightStep,
  ) -> Resolution:
    """Resolves the agent's choice to the action that the environment receives.

    The steps of a flight are labeled with the extra action of its behavior,
    because that choice would have had the same outcome. The flights of
    behaviors without an extra action are labeled with their actions.

    Args:
      choice: int32 [], one of A + K with extra actions, else one of A.
      proposals: int32 [K], the action proposed by each behavior.
      flight: the role of the step in a flight.

    Returns:
      The action, its label, and the component that selected the action.
    """
    delegates = choice >= self.num_actions
    by_extra_action = jnp.asarray([*self.extra_behaviors, 0], jnp.int32)
    chosen = by_extra_action[jnp.maximum(choice - self.num_actions, 0)]
    behavior = jnp.where(flight.in_flight, flight.behavior, chosen)
    proposal = proposals[behavior]
    action = jnp.where(flight.in_flight | delegates, proposal, choice)
    # For each behavior, the number of its extra action, or -1.
    extra = [
      self.extra_behaviors.index(k) if k in self.extra_behaviors else -1
      for k in range(len(self.behaviors))
    ]
    number = jnp.asarray(extra, jnp.int32)[flight.behavior]
    flight_label = jnp.where(number >= 0, self.num_actions + number, proposal)
    source = jnp.where(delegates, types.EXTRA, types.OWN)
    source = jnp.where(flight.in_flight, types.FLIGHT, source)
    label = jnp.where(flight.in_flight, flight_label, choice)
    return Resolution(
      action=action.astype(jnp.int32),
      choice=label.astype(jnp.int32),
      source=source.astype(jnp.uint8),
    )

  def _explore(
    self,
    key: types.PRNGKey,
    epsilon: jax.Array,
    resolution: Resolution,
  ) -> Resolution:
    """Replaces an action of a flight by a random one, which labels the step.

    The extra action would usually not have had this outcome.

    Args:
      key: the random key for drawing.
      epsilon: float32 [], the probability of replacing the action.
      resolution: the outcome without random actions.

    Returns:
      The outcome.
    """
    explore_key, action_key = jax.random.split(key)
    explores = jax.random.uniform(explore_key, [], jnp.float32) < epsilon
    drawn = jax.random.randint(action_key, [], 0, self.num_actions, jnp.int32)
    return resolution._replace(
      action=jnp.where(explores, drawn, resolution.action),
      choice=jnp.where(explores, drawn, resolution.choice),
    )

  def get_extras(self, state: BTActorState) -> dict[str, Any]:
    extras = dict(self.agent.get_extras(state.agent))
    in_flight = state.flight_step.in_flight
    if 'probability' in extras:  # The agent does not select a flight's actions.
      extras['probability'] = jnp.where(in_flight, 1.0, extras['probability'])
    features = (
      behavior.features(state.behaviors[i]) if i in self.proposers else ()
      for i, behavior in enumerate(self.behaviors)
    )
    numbers = np.arange(len(self.behaviors), dtype=np.int32)
    occasional = np.isin(numbers, self.occasional)
    others = state.flight_step.behavior != numbers
    probability = state.flight.start_probability
    return {
      **extras,
      'skipped': occasional & others,
      'choice': state.resolution.choice,
      'source': state.resolution.source,
      'flight_length': state.flight_step.length,
      'flight_behavior': state.flight_step.behavior,
      'flight_probability': jnp.where(self.use_flights, probability, 0.0),
      'proposals': state.proposals,
      'features': tuple(features),
    }


def wrap(
  actor_core: types.ActorCore,
  behaviors: Sequence[behavior_core.BehaviorCore],
  config: config_lib.TransferConfig,
  *,
  num_actions: int,
  behavior_weights: Sequence[float] = (),
  evaluation: bool = False,
  learner: config_lib.LearnerConfig | None = None,
) -> types.ActorCore:
  """Adds behavior transfer to an actor core.

  The agent and every behavior process every step, even if another component
  selects the action; in evaluations without kickstarting, behaviors without an
  extra action do not (`TransferConfig.proposers`), because they never act, and
  in training, some process only their own episodes
  (`TransferConfig.occasional`). A recurrent state that skipped a flight would
  describe an episode that never happened. With `flight_recurrent_state='hold'`,
  the agent's state stays unchanged during flights, in the learner's unroll too.
  With `flight_behavior_state='restart'`, a behavior's recurrent state covers
  only the steps since its last flight started; its host does not restart.

  Args:
    actor_core: the agent's actor core. Its choices are the A actions and one
      for each behavior with an extra action.
    behaviors: the K behaviors.
    config: the settings of flights and extra actions.
    num_actions: A, the number of actions.
    behavior_weights: K weights for drawing the behavior of a flight; uniform if
      empty.
    evaluation: whether to disable flights; the extra action stays available.
    learner: the settings that define the agent's values, for the laws of
      flights that compare them with rewards; None for the defaults.

  Returns:
    An actor core over `BTParams` and `BTInput`. Its `init` passes all arguments
    after the key to the agent's core. With `flight_probability='epsilon'`, the
    only such argument is epsilon, which starts flights; the core receives 0.

  Raises:
    ValueError: if there is no behavior, if the weights do not match the
      behaviors, or if the agent must hold its recurrent state but cannot.
  """
  if not behaviors:
    raise ValueError(
      'behaviors=[] is empty. Pass at least one behavior, or use the agent '
      'without behavior transfer.'
    )
  if config.flight_recurrent_state == 'hold' and actor_core.hold is None:
    raise ValueError(
      "flight_recurrent_state='hold' needs an agent whose actor and learner "
      "can hold its recurrent state, such as agents.R2D2Builder's. Use such an "
      "agent, or choose 'advance'."
    )
  make_law = flight_laws.BY_NAME[config.flight_law]
  core = _Core(
    agent=actor_core,
    behaviors=tuple(behaviors),
    config=config,
    num_actions=num_actions,
    weights=flights.relative_weights(config, behavior_weights, len(behaviors)),
    extra_behaviors=config.extra_behaviors(len(behaviors)),
    proposers=config.proposers(len(behaviors), evaluation=evaluation),
    occasional=() if evaluation else config.occasional(len(behaviors)),
    law=make_law(config, learner or config_lib.LearnerConfig()),
    use_flights=config.flights and not evaluation,
  )
  return types.ActorCore(core.init, core.select_action, core.get_extras)
