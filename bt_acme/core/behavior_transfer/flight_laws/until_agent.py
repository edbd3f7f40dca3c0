"""A law whose flights last until the agent expects more from its own choice.

Flights start as in the paper. A flight ends as soon as the agent's value of its
own greedy choice exceeds that of the behavior's choice by a margin:

  max_a Q(s, a) - Q(s, b) > margin max_a |Q(s, a)|

b is the choice that has the same outcome as the behavior's action: its extra
action, or the action itself if there is none.
"""

import functools
from typing import Tuple

import jax
import jax.numpy as jnp

from bt_acme import config as config_lib
from bt_acme.core import types
from bt_acme.core.behavior_transfer import flights


def make(
  config: config_lib.TransferConfig, learner: config_lib.LearnerConfig
) -> flights.FlightLaw:
  """Returns the law with `until_agent_margin` and `max_flight_length`."""
  del learner

  def start(
    state: flights.FlightState,
    inputs: flights.FlightInput,
    start_key: types.PRNGKey,
    length_key: types.PRNGKey,
  ) -> Tuple[jax.Array, jax.Array, Tuple[()]]:
    del inputs, length_key
    return (
      jax.random.uniform(start_key) < state.start_probability,
      jnp.full([], config.max_flight_length, jnp.int32),
      (),
    )

  return flights.FlightLaw(
    init=tuple,
    start=start,
    ends=functools.partial(agent_leads, margin=config.until_agent_margin),
  )


def agent_leads(
  q_values: jax.Array, choice: jax.Array, *, margin: float
) -> jax.Array:
  """Returns whether the greedy choice is better than another by a margin.

  Args:
    q_values: float32 [A'], the agent's values of all choices.
    choice: int32 [], the behavior's choice.
    margin: the margin, as a fraction of the largest absolute value.

  Returns:
    bool [].
  """
  lead = jnp.max(q_values) - q_values[choice]
  return lead > margin * jnp.max(jnp.abs(q_values))
