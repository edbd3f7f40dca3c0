"""A law whose flights last until the agent expects more from its own choice.

Flights start as in the paper. A flight ends as soon as the agent's value of its
own greedy choice exceeds that of the behavior's choice by a margin:

  max_a Q(s, a) - Q(s, b) > margin max_a |Q(s, a)|

b is the choice that has the same outcome as the behavior's action: its extra
action, or the action itself if there is none.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from bt_acme import config as config_lib
from bt_acme.core.behavior_transfer import flights
from bt_acme.core.behavior_transfer.flight_laws import zeta


def make(
  config: config_lib.TransferConfig, learner: config_lib.LearnerConfig
) -> flights.FlightLaw:
  """Returns the law with `until_agent_margin` and `max_flight_length`."""
  law = zeta.make(config, learner)

  def start(*arguments: Any) -> tuple[jax.Array, jax.Array, Any]:
    starts, length, state = law.start(*arguments)
    return starts, jnp.full_like(length, config.max_flight_length), state

  ends = functools.partial(agent_leads, margin=config.until_agent_margin)
  return flights.FlightLaw(start, ends=ends)


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
