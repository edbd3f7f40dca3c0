"""Flights: periods of an episode during which a behavior is in control.

A law decides when a flight starts and ends (`flight_laws`); the paper's law is
`flight_laws.zeta`. This module draws the behavior of a flight and counts its
steps. The end of the episode also ends the flight (`bt_actor._step_flight`).

Source: Campos et al. 2021 (arXiv:2102.13515), Sec. 4 and Alg. 1.
"""

import numbers
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from bt_acme import config as config_lib
from bt_acme.core import types


class FlightState(NamedTuple):
  """The state of the flight of one environment.

  Attributes:
    steps_left: int32 [], the number of remaining steps of the flight; 0 means
      that the agent is in control.
    behavior: int32 [], the behavior of the flight, one of K. If one behavior is
      drawn for each episode, the behavior of this episode.
    start_probability: float32 [], epsilon_levy of this episode.
    law: the state of the law, which outlives episodes; () for most laws.
    epsilon: float32 [], the probability of a random action at a step of a
      flight, constant in an episode; () if `flight_epsilon` is 0.
  """

  steps_left: jax.Array
  behavior: jax.Array
  start_probability: jax.Array
  law: Any = ()
  epsilon: Any = ()


class FlightInput(NamedTuple):
  """The inputs of a law at one step.

  Attributes:
    is_first: bool [], whether an episode starts.
    prev_reward: float32 [], the reward for the previous action; 0 on an
      episode's first step. Laws also see the observation that ends an episode.
      () for agents of other libraries.
    q_values: float32 [A'], the agent's values of all choices; () if the agent
      has none.
  """

  is_first: jax.Array
  prev_reward: Any
  q_values: Any


class FlightLaw(NamedTuple):
  """Pure functions that decide when a flight starts and ends.

  Attributes:
    start: (flight state, `FlightInput`, keys) -> (bool [], int32 [], law
      state): whether a flight starts if none is in progress, its maximum
      length, and the next state of the law. The two random keys are for the
      start and for the length.
    init: () -> the state of the law, before the first step; () by default.
    ends: (q_values, choice) -> bool []: whether a flight ends before a step
      whose proposed action has the label `choice`. None for laws that draw the
      length when the flight starts.
  """

  start: Callable[
    [FlightState, FlightInput, Sequence[types.PRNGKey]],
    tuple[jax.Array, jax.Array, Any],
  ]
  init: Callable[[], Any] = tuple
  ends: Callable[[jax.Array, jax.Array], jax.Array] | None = None


class FlightStep(NamedTuple):
  """The role of one step in a flight.

  Attributes:
    in_flight: bool [], whether the step belongs to a flight.
    starts: bool [], whether this is the first step of a flight.
    length: int32 [], the drawn length if a flight starts here, else 0.
    behavior: int32 [], the behavior of the flight, one of K.
  """

  in_flight: jax.Array
  starts: jax.Array
  length: jax.Array
  behavior: jax.Array


def relative_weights(
  config: config_lib.TransferConfig,
  weights: Sequence[float],
  num_behaviors: int,
) -> tuple[float, ...]:
  """Divides the weights for drawing the behavior of a flight by their maximum.

  Args:
    config: the settings of flights. A behavior that can only be chosen gets 0.
    weights: one weight for each behavior; uniform if empty.
    num_behaviors: K, the number of behaviors.

  Returns:
    K weights in [0, 1].

  Raises:
    ValueError: if there are not K finite weights of at least 0, or if all are
      0.
  """
  weights = tuple(weights) or (1.0,) * num_behaviors
  if (
    len(weights) != num_behaviors
    or not all(
      isinstance(weight, numbers.Real) and 0 <= weight < float('inf')
      for weight in weights
    )
    or sum(weights) == 0
  ):
    raise ValueError(
      f'behavior_weights={weights} is invalid. Pass one weight of at least 0 '
      f'for each of the {num_behaviors} behaviors, not all 0.'
    )
  if config.flights:
    flying = tuple(
      0.0 if role == 'choose' else weight
      for weight, role in zip(weights, config.roles(num_behaviors), strict=True)
    )
    if sum(flying) == 0:
      raise ValueError(
        f'behavior_roles={config.behavior_roles!r} and '
        f'behavior_weights={weights} leave no behavior for flights. Use '
        'flights=False, or let a behavior fly.'
      )
    weights = flying
  # Weights may exceed the range of float32, so Python floats are divided.
  return tuple(weight / max(weights) for weight in weights)


def new_episode(
  key: types.PRNGKey, config: config_lib.TransferConfig, law: Any = ()
) -> FlightState:
  """Draws epsilon_levy ~ LogUniform[min, max] for a new episode.

  With `flight_epsilon`, the epsilon of the episode's flights is drawn as well.
  It is 0 with probability 1/2, and otherwise from
  LogUniform[flight_epsilon / 10, flight_epsilon].

  Args:
    key: the random key for drawing.
    config: the settings `min_flight_probability`, `max_flight_probability` and
      `flight_epsilon`.
    law: the state of the law.

  Returns:
    The state before the first step of the episode.
  """
  bounds = (config.min_flight_probability, config.max_flight_probability)
  log_bounds = (float(np.log(bound)) for bound in bounds)
  log_probability = jax.random.uniform(key, [], jnp.float32, *log_bounds)
  zero = jnp.zeros([], jnp.int32)
  state = FlightState(zero, zero, jnp.exp(log_probability), law)
  if not config.flight_epsilon:
    return state
  half_key, epsilon_key = jax.random.split(jax.random.fold_in(key, 1))
  uniform = jax.random.uniform(epsilon_key, [], jnp.float32)
  epsilon = config.flight_epsilon * 10 ** (uniform - 1)
  is_exact = jax.random.bernoulli(half_key)
  return state._replace(epsilon=jnp.where(is_exact, 0.0, epsilon))


def no_flight(state: FlightState) -> FlightStep:
  """Returns the `FlightStep` of an environment without flights."""
  no = jnp.zeros([], bool)
  return FlightStep(no, no, jnp.zeros([], jnp.int32), state.behavior)


def step(
  state: FlightState,
  key: types.PRNGKey,
  law: FlightLaw,
  inputs: FlightInput,
  behavior_weights: Sequence[float] | jax.Array,
  draws_behavior: jax.Array | None = None,
) -> tuple[FlightStep, FlightState]:
  """Advances one environment by a step, and may start a flight.

  A flight starts only if no flight is in progress. A flight of length n takes
  exactly n steps, including the step that draws it (Alg. 1).

  Args:
    state: the state before the step.
    key: the random key for this step.
    law: decides whether a flight starts, and its length.
    inputs: the inputs of the law.
    behavior_weights: K weights for drawing the behavior of a flight.
    draws_behavior: bool [], whether this step draws the behavior of the flights
      from now on; None if each flight draws its behavior.

  Returns:
    The role of this step in a flight, and the state after the step.
  """
  *keys, behavior_key = jax.random.split(key, 3)
  starts, length, law_state = law.start(state, inputs, keys)
  starts = (state.steps_left == 0) & starts
  drawn = jax.random.categorical(
    behavior_key, jnp.log(jnp.asarray(behavior_weights, jnp.float32))
  ).astype(jnp.int32)
  draws = starts if draws_behavior is None else draws_behavior
  behavior = jnp.where(draws, drawn, state.behavior)
  steps_left = jnp.where(starts, length, state.steps_left)
  return (
    FlightStep(
      in_flight=steps_left > 0,
      starts=starts,
      length=jnp.where(starts, length, 0),
      behavior=behavior,
    ),
    state._replace(
      steps_left=jnp.maximum(steps_left - 1, 0),
      behavior=behavior,
      law=law_state,
    ),
  )


def end(
  flight: FlightStep, state: FlightState, ends: jax.Array
) -> tuple[FlightStep, FlightState]:
  """Ends a flight in progress before its step, except before its first step.

  Args:
    flight: the role of the step in a flight, as returned by `step`.
    state: the state after the step.
    ends: bool [], whether the law ends the flight.

  Returns:
    The role of the step, and the state after it.
  """
  ends = ends & ~flight.starts
  return (
    flight._replace(in_flight=flight.in_flight & ~ends),
    state._replace(steps_left=jnp.where(ends, 0, state.steps_left)),
  )
