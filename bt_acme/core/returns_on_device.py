"""Returns of the learner's batches: with rlax on a CPU, else in few kernels.

`return_recursion.returns_on_host` has the formula, for an actor's sequence.
"""

from typing import Any

import jax
import jax.numpy as jnp
import rlax


def returns_on_device(
  reward: jax.Array,
  discount_t: jax.Array,
  state_values: jax.Array,
  traces: jax.Array,
  taken_values: jax.Array | None = None,
) -> jax.Array:
  """Computes the returns of `return_recursion` for batches [T, B]."""
  # Each row also needs the trace and the value of the next one.
  zeros = jnp.zeros_like(traces[:1])
  following = jnp.concatenate([traces[1:], zeros])
  inputs = [reward, discount_t, state_values, following]
  if taken_values is not None:
    inputs += [jnp.concatenate([taken_values[1:], zeros])]
  # Values of half precision would not match the rewards in the loop.
  inputs = [x.astype(jnp.result_type(*inputs)) for x in inputs]
  returns: jax.Array = jax.lax.platform_dependent(
    *inputs, cpu=_returns_by_loop, default=_returns_by_tree
  )
  return returns


def _returns_by_loop(
  reward: jax.Array,
  discount_t: jax.Array,
  values: jax.Array,
  traces: jax.Array,
  taken_values: jax.Array | None = None,
) -> jax.Array:
  """Computes returns [T, B] with rlax, from the last row to the first."""
  recursion: Any = rlax.lambda_returns  # For one sequence.
  inputs = [reward, discount_t, values, traces]
  if taken_values is not None:
    recursion = rlax.general_off_policy_returns_from_q_and_v
    inputs = [taken_values[:-1], values, reward, discount_t, traces[:-1]]
  returns: jax.Array = jax.vmap(recursion, in_axes=1, out_axes=1)(*inputs)
  return returns


def _returns_by_tree(
  reward: jax.Array,
  discount_t: jax.Array,
  values: jax.Array,
  traces: jax.Array,
  taken_values: jax.Array | None = None,
) -> jax.Array:
  """Computes returns [T, B] in log2(T) steps, each over all rows.

  G_t = a_t + b_t G_{t+1} is linear, and the composition of two such functions
  is associative. An accelerator starts few kernels for this, but T for a loop.
  """
  if taken_values is None:
    taken_values = values

  def compose(later: Any, earlier: Any) -> Any:
    (a_later, b_later), (a, b) = later, earlier
    return a + b * a_later, b * b_later

  a = reward + discount_t * (values - traces * taken_values)
  scan: Any = jax.lax.associative_scan
  returns: jax.Array = scan(compose, (a, discount_t * traces), reverse=True)[0]
  return returns
