"""Batched steps that skip the environments in which a behavior cannot act.

If all flights of an episode belong to one behavior, the others need not process
its steps, and each further behavior takes only part of the time.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from bt_acme.core import arrays, types
from bt_acme.core.behavior_transfer import behavior_core

# A batch of N environments is processed in at most this many blocks.
_MAX_BLOCKS = 8
_MIN_BLOCK_SIZE = 4

_Step = Callable[[types.Params, Any, Any], tuple[jax.Array, Any]]


def skip_where_idle(
  step: _Step,
) -> Callable[[jax.Array, types.Params, Any, Any], tuple[jax.Array, Any]]:
  """Makes the step of a behavior skip environments under `jax.vmap`.

  Only the blocks of environments that need the step are computed. Elsewhere,
  the state stays unchanged and the proposal is 0.

  Args:
    step: `BehaviorCore.step`.

  Returns:
    The same function with an additional first argument, bool []: whether the
    environment needs the step. Parameters must not vary between environments.
  """

  @jax.custom_batching.custom_vmap
  def skipping(
    acts: jax.Array,
    params: types.Params,
    inputs: behavior_core.BehaviorInput,
    state: Any,
  ) -> tuple[jax.Array, Any]:
    proposal, after = step(params, inputs, state)
    proposal = jnp.where(acts, proposal, 0).astype(jnp.int32)
    return proposal, arrays.tree_where(acts, after, state)

  @skipping.def_vmap
  def batched(
    num: int,
    in_batched: Any,
    acts: jax.Array,
    params: types.Params,
    inputs: behavior_core.BehaviorInput,
    state: Any,
  ) -> tuple[Any, Any]:
    # Inputs that are the same in all environments have no batch axis.
    axes = jax.tree.map(lambda varies: 0 if varies else None, in_batched)
    repeat: Any = jax.vmap(lambda x, _, *own: (x, *own), axes, axis_size=num)
    acts, inputs, state = repeat(acts, params, inputs, state)
    size = max(_MIN_BLOCK_SIZE, -(-num // _MAX_BLOCKS))
    # The environments that need the step come first, then N as padding.
    order = jnp.where(jnp.sort(~acts), num, jnp.argsort(~acts))
    order = jnp.pad(order, (0, size), constant_values=num)

    def block(carry: Any) -> Any:
      start, proposals, states = carry
      rows = jax.lax.dynamic_slice(order, (start,), (size,))
      own_inputs, own = jax.tree.map(
        lambda x: x.at[rows].get(mode='clip'), (inputs, states)
      )
      proposal, after = jax.vmap(step, in_axes=(None, 0, 0))(
        params, own_inputs, own
      )
      proposals, states = jax.tree.map(
        lambda x, y: x.at[rows].set(y, mode='drop'),
        (proposals, states),
        (proposal.astype(jnp.int32), after),
      )
      return start + size, proposals, states

    total, zeros = jnp.sum(acts), jnp.zeros(num, jnp.int32)
    start = jnp.zeros_like(total)
    _, proposals, states = jax.lax.while_loop(
      lambda carry: carry[0] < total, block, (start, zeros, state)
    )
    outputs = (proposals, states)
    return outputs, jax.tree.map(lambda _: True, outputs)

  return skipping
