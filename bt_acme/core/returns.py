"""What the targets of all losses have in common: transitions and returns.

The formulas are written once, over arrays of JAX (the learner's batches) and of
NumPy (an actor's own sequences). Time comes first. Values at row t belong to
what the agent saw at step t; the reward and discount at row t belong to the
transition from row t to t + 1.

There is one reward and no β: NGU's papers mix extrinsic and intrinsic reward as
r^e + β r^i, but here pre-training maximizes the intrinsic reward alone, because
it has no task, and transfer maximizes the task's reward alone.
"""

from typing import NamedTuple, Optional, Protocol

import numpy as np
import numpy.typing as npt

from bt_acme.core import arrays

HostArray = npt.NDArray[np.float64]


class Transitions(NamedTuple):
  """The T transitions of each of B sequences, including the burn-in.

  An actor has one sequence, and its arrays are [T].

  Attributes:
    choice: int32 [T, B], what was chosen, one of A'.
    action: int32 [T, B], the executed primitive action.
    source: uint8 [T, B], one of OWN, EXTRA, FLIGHT.
    probability: float [T, B], μ_t, the choice's probability when it was made.
    reward: float [T, B], r_t, the transition's reward.
    discount: float [T, B], the environment's discount; γ_t is γ times it.
    valid: float [T, B], 1 for a real transition.
  """

  choice: arrays.Array
  action: arrays.Array
  source: arrays.Array
  probability: arrays.Array
  reward: arrays.Array
  discount: arrays.Array
  valid: arrays.Array


class Recursion(Protocol):
  """Computes returns from the last transition to the first.

    G_t = r_t + γ_t [V_{t+1} + c_{t+1} (G_{t+1} - U_{t+1})]

  After the last transition V takes over. Devices use rlax's (`core.loss`), and
  actors `returns_on_host`.
  """

  def __call__(
    self,
    reward: arrays.Array,
    discount_t: arrays.Array,
    state_values: arrays.Array,
    traces: arrays.Array,
    taken_values: Optional[arrays.Array] = None,
  ) -> arrays.Array:
    """Computes G of every transition.

    Args:
      reward: float [T, B], r.
      discount_t: float [T, B], γ.
      state_values: float [T, B], V of what each transition led to.
      traces: float [T, B], c; row 0 is not used.
      taken_values: float [T, B], U; row 0 is not used. None if U is V.

    Returns:
      float [T, B].
    """


def returns_on_host(
  reward: HostArray,
  discount_t: HostArray,
  state_values: HostArray,
  traces: HostArray,
  taken_values: Optional[HostArray] = None,
) -> HostArray:
  """A `Recursion` for one sequence in NumPy, [T]."""
  if taken_values is None:
    taken_values = np.concatenate([state_values[:1], state_values[:-1]])
  following, returns = 0.0, []  # c_{t+1} (G_{t+1} - U_{t+1}); G backwards.
  # Python's own floats, because this is a loop.
  for r, discount, value, trace, taken in zip(
    reward[::-1].tolist(),
    discount_t[::-1].tolist(),
    state_values[::-1].tolist(),
    traces[::-1].tolist(),
    taken_values[::-1].tolist(),
    strict=True,
  ):
    returns.append(r + discount * (value + following))
    following = trace * (returns[-1] - taken)
  return np.array(returns[::-1])


def take(q_values: arrays.Array, index: arrays.Array) -> arrays.Array:
  """Returns the values [T, B] of the choices `index` out of [T, B, A']."""
  xp = arrays.namespace(q_values)
  return xp.take_along_axis(q_values, index[..., None], axis=-1)[..., 0]


def real(x: arrays.Array, valid: arrays.Array) -> arrays.Array:
  """Returns x where it is valid, else 0; a product would let NaN through."""
  return arrays.namespace(x).where(valid > 0, x, 0.0)
