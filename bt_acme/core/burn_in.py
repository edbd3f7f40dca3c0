"""The burn-in: steps that only warm the recurrent state up.

A stored recurrent state is stale, because an older network computed it. So
each network first unrolls over the first steps of a sequence, the burn-in,
with its current parameters; nothing is learned from these steps, and no
gradient flows into them. The rest of the sequence, the trace, is learned from.

Source: Kapturowski et al. 2019 (R2D2), Sec. 3.
"""

from typing import List

import jax
import jax.numpy as jnp

from bt_acme.core import networks, types


def unroll_trace(
  network: networks.QNetwork,
  params: types.Params,
  batch: types.SequenceBatch,
  observations: jax.Array,
  *,
  burn_in_length: int,
  hold_flights: bool = False,
) -> jax.Array:
  """Computes Q-values of the trace, from the state after the burn-in.

  Args:
    network: the Q-network.
    params: the network's parameters, which unroll the burn-in too.
    batch: B sequences of T transitions.
    observations: uint8 [T + 1, B, H, W, C * S], the batch's stacked frames.
    burn_in_length: steps that only warm the state up; 0 starts the trace from
      the stored state.
    hold_flights: whether the steps of a flight leave the recurrent state as it
      was (`TransferConfig.flight_recurrent_state`).

  Returns:
    float32 [T + 1 - burn_in_length, B, A'].
  """
  inputs = [observations, batch.prev_action, batch.prev_reward]
  hold = [_flight_rows(batch.source)] if hold_flights else []
  state = batch.recurrent_state
  if burn_in_length:
    burn_in = slice(burn_in_length)
    _, state = network.unroll(
      params, *_cut(inputs, burn_in), state, *_cut(hold, burn_in)
    )
    state = jax.lax.stop_gradient(state)
  trace = slice(burn_in_length, None)
  q_values, _ = network.unroll(
    params, *_cut(inputs, trace), state, *_cut(hold, trace)
  )
  return q_values


def _flight_rows(source: jax.Array) -> jax.Array:
  """Marks the rows [T + 1, B] of an unroll whose step [T, B] was a flight's."""
  # No step follows the last row, so nothing sees the state after it.
  last = jnp.zeros_like(source[:1], bool)
  return jnp.concatenate([source == types.FLIGHT, last])


def _cut(arrays: List[jax.Array], rows: slice) -> List[jax.Array]:
  return [x[rows] for x in arrays]
