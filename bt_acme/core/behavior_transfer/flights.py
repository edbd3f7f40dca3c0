"""Flights: stretches of an episode in which a behavior has control.

At each step at which the agent is in control, a flight starts with the
probability epsilon_levy of the episode. It ends after as many steps as were
drawn when it started, from a truncated zeta distribution, or with its episode
(`bt_actor._step_flight`), whichever comes first.

Source: Campos et al. 2021 (arXiv:2102.13515), Sec. 4 and Alg. 1, after the
temporally extended exploration of Dabney et al. 2021 (arXiv:2006.01782).
"""

from typing import NamedTuple, Sequence, Tuple

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bt_acme.core import types


class FlightState(NamedTuple):
  """Where one environment is in its flight.

  Attributes:
    steps_left: int32 [], steps of the flight still to come; 0 means that the
      agent is in control.
    behavior: int32 [], the behavior that flies, one of K.
    start_probability: float32 [], epsilon_levy of this episode.
  """

  steps_left: jax.Array
  behavior: jax.Array
  start_probability: jax.Array


class FlightStep(NamedTuple):
  """How one step relates to a flight.

  Attributes:
    in_flight: bool [], whether the step belongs to a flight.
    starts: bool [], whether it is the first step of a flight.
    length: int32 [], the length drawn where a flight starts, else 0.
    behavior: int32 [], the behavior that flies, one of K.
  """

  in_flight: jax.Array
  starts: jax.Array
  length: jax.Array
  behavior: jax.Array


def survival(exponent: float, max_length: int) -> npt.NDArray[np.float32]:
  """Computes P(N > n) of a flight's length N, for n = 1 .. max_length - 1.

  P(N = n) = n^-μ / ζ(μ), and longer flights are cut to max_length.

  Args:
    exponent: μ, above 1.
    max_length: the longest flight, in actor steps.

  Returns:
    float32 [max_length - 1], decreasing.
  """
  # ζ(μ) by Euler-Maclaurin after the first million terms.
  last = max(1_000_000, max_length)
  terms: npt.NDArray[np.float64] = np.arange(1.0, last) ** -exponent
  tail = last ** (1 - exponent) / (exponent - 1) + 0.5 * last**-exponent
  total = terms.sum() + tail
  below = np.cumsum(terms[: max_length - 1])
  return np.asarray((total - below) / total, np.float32)


def relative_weights(
  weights: Sequence[float], num_behaviors: int
) -> Tuple[float, ...]:
  """Divides the weights with which a flight draws its behavior by the largest.

  Args:
    weights: one weight for each behavior; uniform if empty.
    num_behaviors: K, the number of behaviors.

  Returns:
    K weights in [0, 1].

  Raises:
    ValueError: if these are not K weights of which one is positive.
  """
  weights = tuple(weights) or (1.0,) * num_behaviors
  if (
    len(weights) != num_behaviors
    or not all(0 <= weight < float('inf') for weight in weights)
    or sum(weights) == 0
  ):
    raise ValueError(
      f'behavior_weights={weights} must be one weight of at least 0 for each '
      f'of {num_behaviors} behaviors, and not all 0.'
    )
  # This happens in float64, because float32 has a smaller range.
  return tuple(weight / max(weights) for weight in weights)


def new_episode(
  key: types.PRNGKey, *, min_probability: float, max_probability: float
) -> FlightState:
  """Draws epsilon_levy ~ LogUniform[min, max] for an episode to come."""
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
  """Returns the step of an environment in which no flight can start."""
  no = jnp.zeros([], bool)
  return FlightStep(no, no, jnp.zeros([], jnp.int32), state.behavior)


def step(
  state: FlightState,
  key: types.PRNGKey,
  survival_probabilities: jax.Array,
  behavior_weights: Sequence[float],
) -> Tuple[FlightStep, FlightState]:
  """Advances one environment by a step, and may start a flight.

  A flight starts only if none is under way. A flight of length n takes exactly
  n steps, the one that draws it included (Alg. 1).

  Args:
    state: the state before the step.
    key: the key for this step.
    survival_probabilities: float32 [max_length - 1], what `survival` returns.
    behavior_weights: K weights with which a flight draws its behavior.

  Returns:
    How this step relates to a flight, and the state after it.
  """
  start_key, length_key, behavior_key = jax.random.split(key, 3)
  idle = state.steps_left == 0
  starts = idle & (jax.random.uniform(start_key) < state.start_probability)
  length = _draw_length(length_key, survival_probabilities)
  drawn = jax.random.categorical(
    behavior_key, jnp.log(jnp.asarray(behavior_weights, jnp.float32))
  ).astype(jnp.int32)
  behavior = jnp.where(starts, drawn, state.behavior)
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
  """Draws a flight's length, int32 [], by inversion of the survival function.

  Float32 resolves its small values better than the distribution function's
  values near 1.
  """
  uniform = 1.0 - jax.random.uniform(key)  # (0, 1]
  return 1 + jnp.searchsorted(
    -survival_probabilities, -uniform, side='left'
  ).astype(jnp.int32)
