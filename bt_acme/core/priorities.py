"""Priorities of sequences in replay, and the weights that correct for them.

The learner computes them on a device, with JAX arrays [T, B]. Actors compute
them for new sequences on the host, with NumPy arrays [T].
"""

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from bt_acme.core import arrays
from bt_acme.core import td_errors as td_errors_lib


def sequence_priorities(
  errors: td_errors_lib.TDErrors, *, max_weight: float
) -> arrays.Array:
  """Mixes the maximum and the mean absolute TD error of each sequence.

    p = η max |δ| + (1 - η) mean |δ|

  Source: Kapturowski et al. 2019 (R2D2), Sec. 2.3. Unlike in the paper, the
  mean excludes padding.

  Args:
    errors: δ and δ', [T, B].
    max_weight: η, in [0, 1]; 0.9 in the paper.

  Returns:
    float [B], before the replay's exponent; 0 for sequences without trained
    steps.
  """
  xp = arrays.namespace(errors.own)
  deltas = xp.concatenate([errors.own, errors.duplicate])
  weights = xp.concatenate([errors.trained, errors.duplicated])
  abs_errors = xp.where(weights > 0, xp.abs(deltas), 0.0)
  count = xp.maximum(xp.sum(weights, axis=0), 1.0)  # [B]
  mean = xp.sum(abs_errors, axis=0) / count  # [B]
  return max_weight * xp.max(abs_errors, axis=0) + (1 - max_weight) * mean


def importance_weights(probabilities: jax.Array, exponent: float) -> jax.Array:
  """Returns the importance weights of sampled sequences.

    w = (p_min / p)^β

  Source: Schaul et al. 2016 (arXiv:1511.05952), Sec. 3.4, with the minimum of
  the batch instead of that of the replay.

  Args:
    probabilities: float32 [B], the probability with which replay sampled each
      sequence.
    exponent: β.

  Returns:
    float32 [B], at most 1.
  """
  weights = (1.0 / probabilities) ** exponent
  return weights / jnp.max(weights)


def check_finite(priorities: npt.ArrayLike) -> None:
  """Checks that all priorities are finite.

  Raises:
    FloatingPointError: if a priority is not finite, because the learner has
      diverged.
  """
  if not np.isfinite(priorities).all():
    raise FloatingPointError(
      'A priority is not finite, because Q-values or rewards are not: the '
      'learner has diverged. Lower learning_rate or max_gradient_norm.'
    )
