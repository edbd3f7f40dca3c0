"""Returns, shared by all targets, which `targets.py` defines.

The formulas work on both JAX arrays (the learner's batches) and NumPy arrays
(an actor's own sequences). Time is the first axis. Values at row t belong to
the observation of step t; the reward and discount at row t belong to the
transition from row t to t + 1.

There is only one reward and no β. The NGU papers mix extrinsic and intrinsic
rewards as r^e + β r^i, but here pre-training maximizes the intrinsic reward
alone, because it has no task, and transfer maximizes the task's reward alone.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from bt_acme.core import arrays

HostArray = npt.NDArray[np.float64]
# `returns_on_host`, or a function with its arguments for arrays [T, B].
Recursion = Callable[..., arrays.Array]


def returns_on_host(
  reward: HostArray,
  discount_t: HostArray,
  state_values: HostArray,
  traces: HostArray,
  taken_values: HostArray | None = None,
) -> HostArray:
  """Computes the return G of every transition from the last to the first.

    G_t = r_t + γ_t [V_{t+1} + c_{t+1} (G_{t+1} - U_{t+1})]

  The recursion bootstraps from V after the last transition. This function is
  for one sequence of an actor; `returns_on_device` is for batches.

  Args:
    reward: float64 [T], r.
    discount_t: float64 [T], γ.
    state_values: float64 [T], V of the state that each transition leads to.
    traces: float64 [T], c; row 0 is not used.
    taken_values: float64 [T], U; row 0 is not used. None if U equals V.

  Returns:
    float64 [T].
  """
  # Each row needs the trace and the value of the next one: G = a + b G_{t+1}.
  traces = np.concatenate([traces[1:], np.zeros(1)])
  if taken_values is None:
    taken_values = state_values
  else:
    taken_values = np.concatenate([taken_values[1:], np.zeros(1)])
  a = reward + discount_t * (state_values - traces * taken_values)
  b = discount_t * traces
  g, returns = 0.0, []
  # Python floats are faster than NumPy scalars in a loop.
  for a_t, b_t in zip(a[::-1].tolist(), b[::-1].tolist(), strict=True):
    g = a_t + b_t * g
    returns.append(g)
  return np.array(returns[::-1])


def take(q_values: arrays.Array, index: arrays.Array) -> arrays.Array:
  """Returns the values of choices, [T, B], from all Q-values, [T, B, A']."""
  xp = arrays.namespace(q_values)
  return xp.take_along_axis(q_values, index[..., None], axis=-1)[..., 0]


def real(x: arrays.Array, valid: arrays.Array) -> arrays.Array:
  """Returns x where `valid` is 1, else 0; a product would pass NaN through."""
  return arrays.namespace(x).where(valid > 0, x, 0.0)
