"""The paper's law: flights start at random and have random lengths.

At each step where the agent is in control, a flight starts with the
probability epsilon_levy of the episode. Its length is drawn from a zeta
distribution when it starts, and clipped to a maximum.

Source: Campos et al. 2021 (arXiv:2102.13515), Sec. 4 and Alg. 1, after the
temporally extended exploration of Dabney et al. 2021 (arXiv:2006.01782).
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bt_acme import config as config_lib
from bt_acme.core import types
from bt_acme.core.behavior_transfer import flights


def make(
  config: config_lib.TransferConfig, learner: config_lib.LearnerConfig
) -> flights.FlightLaw:
  """Returns the law with `flight_exponent` and `max_flight_length`."""
  del learner
  table = survival(config.flight_exponent, config.max_flight_length)

  def start(
    state: flights.FlightState,
    inputs: flights.FlightInput,
    keys: Sequence[types.PRNGKey],
  ) -> tuple[jax.Array, jax.Array, tuple[()]]:
    del inputs
    start_key, length_key = keys
    return (
      jax.random.uniform(start_key, [], jnp.float32) < state.start_probability,
      draw_length(length_key, jnp.asarray(table)),
      (),
    )

  return flights.FlightLaw(start)


def survival(exponent: float, max_length: int) -> npt.NDArray[np.float32]:
  """Computes P(N > n) for a flight's length N and n = 1 .. max_length - 1.

  P(N = n) = n^-μ / ζ(μ); longer flights are clipped to max_length.

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


def draw_length(
  key: types.PRNGKey, survival_probabilities: jax.Array
) -> jax.Array:
  """Draws a flight's length, int32 [], by inverting the survival function.

  Float32 resolves the small values of the survival function better than values
  of the distribution function near 1.
  """
  uniform = 1.0 - jax.random.uniform(key, [], jnp.float32)  # (0, 1]
  return 1 + jnp.searchsorted(
    -survival_probabilities, -uniform, side='left'
  ).astype(jnp.int32)
