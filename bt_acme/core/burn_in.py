"""Burn-in: steps that only warm up the recurrent state.

A stored recurrent state is stale, because an older network computed it. Each
network therefore first unrolls over the burn-in, the first steps of a sequence,
with its current parameters. These steps are not trained on, and no gradient
flows into them. The loss covers the rest of the sequence, called the trace.

A sequence that starts an episode needs no burn-in, because its initial state is
zero for every network. The loss covers all of its steps. Otherwise, the first
steps of an episode would never be trained on.

Source: Kapturowski et al. 2019 (R2D2), Sec. 3, which does not discuss the start
of an episode.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from bt_acme.core import arrays, networks, types


def unroll(
  network: networks.QNetwork,
  params: Sequence[types.Params],
  batch: types.SequenceBatch,
  observations: jax.Array,
  *,
  burn_in_length: int,
  hold_flights: bool = False,
) -> list[jax.Array]:
  """Computes the Q-values of all steps; stops gradients at the end of burn-ins.

  Args:
    network: the Q-network.
    params: the parameters of the online network, with gradients, and of others.
      Each network also uses its own for the burn-in.
    batch: B sequences of T transitions.
    observations: uint8 [T + 1, B, H, W, C * S], the batch's stacked frames.
    burn_in_length: number of steps that only warm up the state, except in a
      sequence that starts an episode; 0 starts every trace from the stored
      state.
    hold_flights: whether the recurrent state stays unchanged during a flight
      (`TransferConfig.flight_recurrent_state`).

  Returns:
    For each network, float32 [T + 1, B, A'].
  """
  inputs = [observations, batch.prev_action, batch.prev_reward]
  hold = []
  if hold_flights:
    # No step follows the last row, so the state after it is never used.
    last = jnp.zeros_like(batch.source[:1], bool)
    hold = [jnp.concatenate([batch.source == types.FLIGHT, last])]
  states = [batch.recurrent_state] * len(params)

  def unroll_rows(
    rows: slice, states: list[types.LSTMState]
  ) -> list[tuple[jax.Array, types.LSTMState]]:
    shown, held = ([x[rows] for x in each] for each in (inputs, hold))
    return network.unroll_all(params, *shown, states, *held)

  if not burn_in_length:
    return [q_values for q_values, _ in unroll_rows(slice(None), states)]
  before = unroll_rows(slice(burn_in_length), states)
  starts = _starts_episode(batch)[:, None]
  states = [state for _, state in before]
  states = arrays.tree_where(starts, states, jax.lax.stop_gradient(states))
  after = unroll_rows(slice(burn_in_length, None), states)
  return [
    jnp.concatenate([q_burn_in, q_trace])
    for (q_burn_in, _), (q_trace, _) in zip(before, after, strict=True)
  ]


def trained_steps(
  batch: types.SequenceBatch, *, burn_in_length: int
) -> jax.Array:
  """Marks the valid steps that the loss covers, float32 [T, B]."""
  valid: jax.Array = batch.valid
  if not burn_in_length:
    return valid
  in_trace = jnp.arange(len(valid))[:, None] >= burn_in_length
  return jnp.where(in_trace | _starts_episode(batch), valid, 0.0)


def _starts_episode(batch: types.SequenceBatch) -> jax.Array:
  """Marks the sequences that start at the first step of an episode, [B]."""
  starts: jax.Array = batch.prev_action[0] == types.NO_ACTION
  return starts
