"""Flights: periods of an episode during which a behavior is in control.

At each step where the agent is in control, a flight starts with the
probability epsilon_levy of the episode. Its length is drawn from a truncated
zeta distribution when it starts. The end of the episode also ends the flight
(`bt_actor._step_flight`).

Source: Campos et al. 2021 (arXiv:2102.13515), Sec. 4 and Alg. 1, after the
temporally extended exploration of Dabney et al. 2021 (arXiv:2006.01782).
"""

from typing import NamedTuple, Optional, Sequence, Tuple, Union

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bt_acme.core import types


class FlightState(NamedTuple):
  """The state of the flight of one environment.

  Attributes:
    steps_left: int32 [], the number of remaining steps of the flight; 0 means
      that the agent is in control.
    behavior: int32 [], the behavior of the flight, one of K. If one behavior is
      drawn for each episode, the behavior of this episode.
    start_probability: float32 [], epsilon_levy of this episode.
  """

  steps_left: jax.Array
  behavior: jax.Array
  start_probability: jax.Array


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


def survival(exponent: float, max_length: int) -> npt.NDArray[np.float32]:
  """Computes P(N > n) for a flight's length N and n = 1 .. max_length - 1.

  P(N = n) = n^-μ / ζ(μ); longer flights are truncated to max_length.

  Args:
    exponent: μ, greater than 1.
    max_length: the maximum length of a flight, in actor steps.

  Returns:
    float32 [max_length - 1], decreasing.
  """
  # ζ(μ): the first million terms, then the Euler-Maclaurin formula.
  last = max(1_000_000, max_length)
  terms: npt.NDArray[np.float64] = np.arange(1.0, last) ** -exponent
  tail = last ** (1 - exponent) / (exponent - 1) + 0.5 * last**-exponent
  total = terms.sum() + tail
  below = np.cumsum(terms[: max_length - 1])
  return np.asarray((total - below) / total, np.float32)


def relative_weights(
  weights: Sequence[float], num_behaviors: int, roles: Sequence[str] = ()
) -> Tuple[float, ...]:
  """Divides the weights for drawing the behavior of a flight by their maximum.

  Args:
    weights: one weight for each behavior; uniform if empty.
    num_behaviors: K, the number of behaviors.
    roles: the role of each behavior; one that can only be chosen gets 0. Empty
      if all behaviors fly.

  Returns:
    K weights in [0, 1].

  Raises:
    ValueError: if there are not K finite weights of at least 0, or if all are
      0.
  """
  weights = tuple(weights) or (1.0,) * num_behaviors
  if (
    len(weights) != num_behaviors
    or not all(0 <= weight < float('inf') for weight in weights)
    or sum(weights) == 0
  ):
    raise ValueError(
      f'behavior_weights={weights} is invalid. Pass one weight of at least 0 '
      f'for each of the {num_behaviors} behaviors, not all 0.'
    )
  if roles:
    flying = tuple(
      0.0 if role == 'choose' else weight
      for weight, role in zip(weights, roles, strict=True)
    )
    if sum(flying) == 0:
      raise ValueError(
        f'behavior_roles={",".join(roles)!r} and behavior_weights={weights} '
        'leave no behavior for flights. Use flights=False, or let a behavior '
        'fly.'
      )
    weights = flying
  # Weights may exceed the range of float32, so Python floats are divided.
  return tuple(weight / max(weights) for weight in weights)


def new_episode(
  key: types.PRNGKey, *, min_probability: float, max_probability: float
) -> FlightState:
  """Draws epsilon_levy ~ LogUniform[min, max] for a new episode."""
  log_probability = jax.random.uniform(
    key,
    [],
    jnp.float32,
    float(np.log(min_probability)),
    float(np.log(max_probability)),
  )
  zero = jnp.zeros([], jnp.int32)
  return FlightState(zero, zero, jnp.exp(log_probability))


def no_flight(state: FlightState) -> FlightStep:
  """Returns the `FlightStep` of an environment without flights."""
  no = jnp.zeros([], bool)
  return FlightStep(no, no, jnp.zeros([], jnp.int32), state.behavior)


def step(
  state: FlightState,
  key: types.PRNGKey,
  survival_probabilities: jax.Array,
  behavior_weights: Union[Sequence[float], jax.Array],
  draws_behavior: Optional[jax.Array] = None,
) -> Tuple[FlightStep, FlightState]:
  """Advances one environment by a step, and may start a flight.

  A flight starts only if no flight is in progress. A flight of length n takes
  exactly n steps, including the step that draws it (Alg. 1).

  Args:
    state: the state before the step.
    key: the random key for this step.
    survival_probabilities: float32 [max_length - 1], the result of `survival`.
    behavior_weights: K weights for drawing the behavior of a flight.
    draws_behavior: bool [], whether this step draws the behavior of the flights
      from now on; None if each flight draws its behavior.

  Returns:
    The role of this step in a flight, and the state after the step.
  """
  start_key, length_key, behavior_key = jax.random.split(key, 3)
  idle = state.steps_left == 0
  starts = idle & (jax.random.uniform(start_key) < state.start_probability)
  length = _draw_length(length_key, survival_probabilities)
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
    FlightState(
      jnp.maximum(steps_left - 1, 0), behavior, state.start_probability
    ),
  )


def _draw_length(
  key: types.PRNGKey, survival_probabilities: jax.Array
) -> jax.Array:
  """Draws a flight's length, int32 [], by inverting the survival function.

  Float32 resolves the small values of the survival function better than values
  of the distribution function near 1.
  """
  uniform = 1.0 - jax.random.uniform(key)  # (0, 1]
  return 1 + jnp.searchsorted(
    -survival_probabilities, -uniform, side='left'
  ).astype(jnp.int32)
