"""Priorities: how likely replay is to sample each sequence again.

The learner computes them on a device, and actors compute those of new sequences
on the host; so the arrays are JAX's or NumPy's.
"""

import chex
import numpy as np
import numpy.typing as npt

from bt_acme.core import arrays


def sequence_priorities(
  td_errors: arrays.Array, weights: arrays.Array, *, max_weight: float
) -> arrays.Array:
  """Mixes the largest and the mean absolute TD error of each sequence.

    p = η max |δ| + (1 - η) mean |δ|

  Source: Kapturowski et al. 2019 (R2D2), Sec. 2.3. Differs from the paper:
  steps that only pad a sequence are left out of the mean.

  Args:
    td_errors: float32 [N, B], every TD error of a sequence, including those of
      duplicates.
    weights: float32 [N, B], 1 where the error counts, else 0.
    max_weight: η, in [0, 1]; 0.9 in the paper.

  Returns:
    float32 [B], before the replay's exponent; 0 where nothing counts.
  """
  chex.assert_rank([td_errors, weights], 2)
  chex.assert_equal_shape([td_errors, weights])
  xp = arrays.namespace(td_errors)
  abs_errors = xp.where(weights > 0, xp.abs(td_errors), 0.0)
  count = xp.maximum(xp.sum(weights, axis=0), 1.0)  # [B]
  mean = xp.sum(abs_errors, axis=0) / count  # [B]
  return max_weight * xp.max(abs_errors, axis=0) + (1 - max_weight) * mean


def check_finite(priorities: npt.ArrayLike) -> None:
  """Refuses priorities that are not finite numbers.

  Raises:
    ValueError: if the learner has diverged.
  """
  if not np.isfinite(priorities).all():
    raise ValueError(
      'A priority is not a finite number, because Q-values or rewards are not: '
      'the learner has diverged. Lower learning_rate or max_gradient_norm.'
    )
