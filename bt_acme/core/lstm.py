"""An LSTM that is cheap to train on long sequences.

The cell and the parameter tree equal those of `hk.LSTM`, but the inputs of all
steps are projected in one product before the scan. The backward pass carries
only the state's gradient through time. The weight gradient is one product after
the scan (a few on a CPU), whereas differentiating a scan of `hk.LSTM`
accumulates the weight gradient at every step.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import haiku as hk
import jax
import jax.numpy as jnp

from bt_acme.core import arrays, types

_FORGET_BIAS = 1.0  # Added to the forget gate, as hk.LSTM does.
_CPU_ROWS = 1024  # Rows per product for the weight gradient on a CPU.
_UNROLL = 16  # Steps per iteration of a loop on an accelerator.
# On an NVIDIA GPU, products are faster if rows have a multiple of 8 numbers.
_ALIGNMENT = 8

# The hidden states of all steps, the last hidden state and the last cell.
_Unrolled = tuple[jax.Array, jax.Array, jax.Array]


class Recurrence(NamedTuple):
  """An LSTM and what it unrolls over.

  Attributes:
    w: float32 [I + H, 4H], the weights.
    b: float32 [4H], the biases.
    inputs: float32 [T, B, I].
    hidden: float32 [B, H], the hidden state before the first row.
    cell: float32 [B, H], the cell before the first row.
  """

  w: jax.Array
  b: jax.Array
  inputs: jax.Array
  hidden: jax.Array
  cell: jax.Array


def _cell(
  gates: jax.Array, cell: jax.Array, axis: int = -1
) -> tuple[jax.Array, jax.Array, tuple[jax.Array, ...]]:
  """Computes one step from the projected inputs and state.

  Args:
    gates: float32 [B, 4H], or [4H, B] with axis 0.
    cell: float32 [B, H], or [H, B] with axis 0.
    axis: the axis of the gates.

  Returns:
    The hidden state, the cell, and the four activated gates for the backward
    pass.
  """
  i, g, f, o = jnp.split(gates, 4, axis=axis)
  i, f, o = map(jax.nn.sigmoid, (i, f + _FORGET_BIAS, o))
  g = jnp.tanh(g)
  new_cell = f * cell + i * g
  return o * jnp.tanh(new_cell), new_cell, (i, g, f, o)


def _product(inputs: jax.Array, d_gates: jax.Array) -> jax.Array:
  """Computes the weight gradient [I, 4H], summed over T and B.

  Args:
    inputs: float32 [T, B, I].
    d_gates: float32 [T, B, 4H], the gradient of the gates.
  """
  return jnp.einsum('tbi,tbg->ig', inputs, d_gates)


def _product_in_parts(inputs: jax.Array, d_gates: jax.Array) -> jax.Array:
  """Computes `_product` in chunks of steps.

  On a CPU, XLA's product takes twice as long when its rows do not fit into the
  caches.
  """
  length, batch_size = inputs.shape[:2]
  steps = max(1, _CPU_ROWS // batch_size)
  parts, rest = divmod(length, steps)
  if parts <= 1:
    return _product(inputs, d_gates)

  def body(total: jax.Array, part: Any) -> tuple[jax.Array, None]:
    return total + _product(*part), None

  total, _ = jax.lax.scan(
    body,
    _product(inputs[:rest], d_gates[:rest]),
    jax.tree.map(
      lambda x: x[rest:].reshape([parts, steps, *x.shape[1:]]),
      (inputs, d_gates),
    ),
  )
  return total


def _scan_on_cpu(lstm: Recurrence) -> tuple[Any, ...]:
  """Returns hiddens [T, B, H], cells and gates [T, H, B], and the last state.

  The state is transposed, [H, B], because on a CPU its product with the weights
  takes only three quarters of the time of [B, H].
  """
  w_x, w_h = jnp.split(lstm.w, [lstm.inputs.shape[-1]])
  gates_x = lstm.inputs @ w_x  # [T, B, 4H]
  # The weights are transposed once. Without the barrier, XLA would transpose
  # them in each step's product, which makes it up to ten times slower on a CPU.
  barrier: Any = jax.lax.optimization_barrier
  w_h_transposed = barrier(w_h.T)

  def body(carry: Any, gates_x_t: jax.Array) -> tuple[Any, Any]:
    hidden, cell = carry
    gates = gates_x_t.T + lstm.b[:, None] + w_h_transposed @ hidden
    new_hidden, new_cell, activated = _cell(gates, cell, axis=0)
    return (new_hidden, new_cell), (new_hidden, new_cell, activated)

  (last_hidden, last_cell), (hiddens, cells, gates) = jax.lax.scan(
    body, (lstm.hidden.T, lstm.cell.T), gates_x
  )
  hiddens = jnp.swapaxes(hiddens, 1, 2)  # [T, B, H]
  return hiddens, cells, gates, last_hidden.T, last_cell.T


def _aligned(lstm: Recurrence) -> Recurrence:
  """Pads the inputs with zeros, and adds rows of zeros to the weights."""
  size = lstm.inputs.shape[-1]
  more = -size % _ALIGNMENT
  zeros = jnp.zeros([more, lstm.w.shape[-1]], lstm.w.dtype)
  return lstm._replace(
    w=jnp.concatenate([lstm.w[:size], zeros, lstm.w[size:]]),
    inputs=jnp.pad(lstm.inputs, ((0, 0), (0, 0), (0, more))),
  )


def _scan_on_accelerator(*lstms: Recurrence) -> list[tuple[Any, ...]]:
  """Computes `_scan_on_cpu` of each with few kernels, and zeros for gates.

  A kernel of one step computes for less time than it takes to start, so one
  loop unrolls all N LSTMs.
  """
  lstms = tuple(_aligned(lstm) for lstm in lstms)
  size = lstms[0].inputs.shape[-1]
  w_h = jnp.stack([lstm.w[size:] for lstm in lstms])  # [N, H, 4H]
  gates_x = jnp.stack([x.inputs @ x.w[:size] + x.b for x in lstms], axis=1)
  hidden = jnp.stack([lstm.hidden for lstm in lstms])  # [N, B, H]
  cell = jnp.stack([lstm.cell for lstm in lstms])

  def body(carry: Any, gates_x_t: jax.Array) -> tuple[Any, jax.Array]:
    hidden, cell, _ = _cell(gates_x_t + carry[0] @ w_h, carry[1])
    return (hidden, cell), jnp.stack([hidden, cell])

  (hidden, cell), states = jax.lax.scan(
    body, (hidden, cell), gates_x, unroll=_UNROLL
  )  # [T, 2, N, B, H]
  hiddens, cells = states[:, 0], jnp.swapaxes(states[:, 1], 2, 3)
  # The backward pass computes the gates again. XLA removes unused zeros.
  gates = (jnp.zeros_like(cells[:, 0]),) * 4
  return [
    (hiddens[:, i], cells[:, i], gates, hidden[i], cell[i])
    for i in range(len(lstms))
  ]


def _forward(*lstms: Recurrence) -> tuple[tuple[_Unrolled, ...], Any]:
  unrolled = jax.lax.platform_dependent(
    *lstms,
    cpu=lambda *each: [_scan_on_cpu(lstm) for lstm in each],
    default=_scan_on_accelerator,
  )
  hiddens, cells, gates, *_ = unrolled[0]
  results = tuple((hiddens, *last) for hiddens, _, _, *last in unrolled)
  return results, (lstms[0], hiddens, cells, gates)


@jax.custom_vjp
def _recurrence(*lstms: Recurrence) -> tuple[_Unrolled, ...]:
  """Unrolls LSTMs of equal shapes, with gradients only of the first.

  Returns:
    For each LSTM, the hidden states of all steps [T, B, H], the last hidden
    state and the last cell.
  """
  return _forward(*lstms)[0]


def _backward(saved: Any, cotangents: Any) -> tuple[Any, ...]:
  lstm, hiddens, *_ = saved
  hiddens_tm1 = jnp.concatenate([lstm.hidden[None], hiddens[:-1]])  # [T, B, H]
  first = jax.lax.platform_dependent(
    saved,
    hiddens_tm1,
    cotangents[0],
    cpu=_gradients_on_cpu,
    default=_gradients_on_accelerator,
  )
  return first, *[None] * (len(cotangents) - 1)


def _gradients_on_cpu(
  saved: Any, hiddens_tm1: jax.Array, cotangents: Any
) -> Recurrence:
  d_gates, *d_state = _backward_on_cpu(saved, cotangents)
  return _gradients(saved[0], hiddens_tm1, _product_in_parts, d_gates, *d_state)


def _gradients_on_accelerator(
  saved: Any, hiddens_tm1: jax.Array, cotangents: Any
) -> Recurrence:
  lstm, _, cells, _ = saved
  aligned = _aligned(lstm)
  d_lstm = _gradients(
    aligned,
    hiddens_tm1,
    _product,
    *_backward_on_accelerator(aligned, hiddens_tm1, cells, cotangents),
  )
  size, end = lstm.inputs.shape[-1], aligned.inputs.shape[-1]
  return d_lstm._replace(
    w=jnp.concatenate([d_lstm.w[:size], d_lstm.w[end:]]),
    inputs=d_lstm.inputs[..., :size],
  )


def _gradients(
  lstm: Recurrence,
  hiddens_tm1: jax.Array,
  product: Callable[[jax.Array, jax.Array], jax.Array],
  d_gates: jax.Array,
  d_hidden: jax.Array,
  d_cell: jax.Array,
) -> Recurrence:
  """Returns all gradients, given those of gates [T, B, 4H] and state."""
  d_w = jnp.concatenate(
    [product(x, d_gates) for x in (lstm.inputs, hiddens_tm1)]
  )
  d_b = jnp.sum(d_gates, axis=(0, 1))
  d_inputs = d_gates @ lstm.w[: lstm.inputs.shape[-1]].T
  return Recurrence(d_w, d_b, d_inputs, d_hidden, d_cell)


def _backward_on_cpu(
  saved: Any, cotangents: Any
) -> tuple[jax.Array, jax.Array, jax.Array]:
  """Returns the gradients of gates [T, B, 4H], hidden state and cell [B, H]."""
  lstm, _, cells, gates = saved
  d_hiddens, d_last_hidden, d_last_cell = cotangents
  w_h = lstm.w[lstm.inputs.shape[-1] :]
  cells_tm1 = jnp.concatenate([lstm.cell.T[None], cells[:-1]])  # [T, H, B]

  def body(carry: Any, inputs: Any) -> tuple[Any, jax.Array]:
    d_output, (i, g, f, o), cell_t, cell_tm1 = inputs
    tanh_cell = jnp.tanh(cell_t)
    d_hidden = carry[0] + d_output.T
    d_cell = carry[1] + d_hidden * o * (1 - tanh_cell**2)
    d_gates = jnp.concatenate(
      [
        d_cell * g * i * (1 - i),
        d_cell * i * (1 - g**2),
        d_cell * cell_tm1 * f * (1 - f),
        d_hidden * tanh_cell * o * (1 - o),
      ]
    )
    return (w_h @ d_gates, d_cell * f), d_gates.T

  (d_hidden, d_cell), d_gates = jax.lax.scan(
    body,
    (d_last_hidden.T, d_last_cell.T),
    (d_hiddens, gates, cells, cells_tm1),
    reverse=True,
  )
  return d_gates, d_hidden.T, d_cell.T


def _backward_on_accelerator(
  lstm: Recurrence, hiddens_tm1: jax.Array, cells: jax.Array, cotangents: Any
) -> tuple[jax.Array, jax.Array, jax.Array]:
  """Computes `_backward_on_cpu` with few kernels, without saved gates."""
  d_hiddens, d_last_hidden, d_last_cell = cotangents
  w_h = lstm.w[lstm.inputs.shape[-1] :]
  cells = jnp.swapaxes(cells, 1, 2)
  cells_tm1 = jnp.concatenate([lstm.cell[None], cells[:-1]])  # [T, B, H]
  rows = jnp.concatenate([lstm.inputs, hiddens_tm1], axis=-1)  # [T, B, I + H]
  # Everything that does not depend on the next step is computed for all steps.
  _, _, (i, g, f, o) = _cell(rows @ lstm.w + lstm.b, cells_tm1)
  tanh_cells = jnp.tanh(cells)
  factors = (
    o * (1 - tanh_cells**2),
    jnp.stack([g * i * (1 - i), i * (1 - g**2), cells_tm1 * f * (1 - f)], 2),
    tanh_cells * o * (1 - o),
    f,
  )

  def body(carry: Any, inputs: Any) -> tuple[Any, jax.Array]:
    d_output, (of_cell, of_gates, of_output_gate, forget) = inputs
    d_hidden = carry[0] + d_output
    d_cell = carry[1] + d_hidden * of_cell
    d_gates = jnp.concatenate(
      [
        (d_cell[:, None] * of_gates).reshape(len(d_cell), -1),
        d_hidden * of_output_gate,
      ],
      axis=-1,
    )
    return (d_gates @ w_h.T, d_cell * forget), d_gates

  (d_hidden, d_cell), d_gates = jax.lax.scan(
    body,
    (d_last_hidden, d_last_cell),
    (d_hiddens, factors),
    reverse=True,
    unroll=_UNROLL,
  )
  return d_gates, d_hidden, d_cell


_recurrence.defvjp(_forward, _backward)


def _holding_recurrence(lstm: Recurrence, hold: jax.Array) -> _Unrolled:
  """Unrolls like `_recurrence`, but steps in hold [T, B] keep the state."""
  w_x, w_h = jnp.split(lstm.w, [lstm.inputs.shape[-1]])

  def body(carry: Any, inputs: Any) -> tuple[Any, jax.Array]:
    gates_x_t, hold_t = inputs
    gates = gates_x_t + lstm.b + carry[0] @ w_h
    new_hidden, new_cell, _ = _cell(gates, carry[1])
    after = (new_hidden, new_cell)
    return arrays.tree_where(hold_t[:, None], carry, after), new_hidden

  (last_hidden, last_cell), hiddens = jax.lax.scan(
    body, (lstm.hidden, lstm.cell), (lstm.inputs @ w_x, hold)
  )
  return hiddens, last_hidden, last_cell


def _single_step(lstm: Recurrence) -> _Unrolled:
  """Unrolls over one row with one product and no copies of split weights."""
  both = jnp.concatenate([lstm.inputs[0], lstm.hidden], axis=-1)
  hidden, cell, _ = _cell(both @ lstm.w + lstm.b, lstm.cell)
  return hidden[None], hidden, cell


def parameters(input_size: int, hidden_size: int) -> tuple[Any, Any]:
  """Returns the weights and biases of an `hk.LSTM`, for `hk.transform`.

  Args:
    input_size: I, the size of a row of inputs.
    hidden_size: H, the size of the state.
  """
  size = input_size + hidden_size
  w_init = hk.initializers.TruncatedNormal(1.0 / size**0.5)
  with hk.name_scope('lstm/linear'):
    w = hk.get_parameter('w', [size, 4 * hidden_size], init=w_init)
    b = hk.get_parameter('b', [4 * hidden_size], init=jnp.zeros)
  return w, b


def unroll(
  lstms: Sequence[Recurrence], hold: jax.Array | None = None
) -> list[tuple[jax.Array, types.LSTMState]]:
  """Unrolls LSTMs of equal shapes.

  Args:
    lstms: the LSTMs with their inputs. Only the first has gradients, so all
      others must not depend on what is trained.
    hold: bool [T, B], rows that use the state but do not update it. None (no
      such rows) is faster.

  Returns:
    For each LSTM, the outputs, float32 [T, B, H], and the state after the last
    row.
  """
  if hold is not None:
    unrolled = [_holding_recurrence(lstm, hold) for lstm in lstms]
  elif len(lstms[0].inputs) == 1:
    unrolled = [_single_step(lstm) for lstm in lstms]
  else:
    unrolled = list(_recurrence(*lstms))
  return [(hiddens, types.LSTMState(*last)) for hiddens, *last in unrolled]
