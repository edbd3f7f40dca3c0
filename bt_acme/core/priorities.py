"""TD errors, and the priorities by which replay samples sequences again.

The learner computes them on a device, and actors compute those of new sequences
on the host; so the arrays are JAX's [T, B] or NumPy's [T].
"""

from typing import NamedTuple

import chex
import numpy as np
import numpy.typing as npt

from bt_acme import config as config_lib
from bt_acme.core import arrays, returns, targets
from bt_acme.core.behavior_transfer import relabelling


class TDErrors(NamedTuple):
  """TD errors of every transition under each of its labels.

  Attributes:
    target: float [T, B], the target of both.
    own: float [T, B], δ, under the label of the transition itself.
    duplicate: float [T, B], δ', under the label of its duplicate.
    trained: float [T, B], 1 where δ counts: for real transitions, without those
      of a burn-in.
    duplicated: float [T, B], 1 where δ' counts.
  """

  target: arrays.Array
  own: arrays.Array
  duplicate: arrays.Array
  trained: arrays.Array
  duplicated: arrays.Array


def td_errors(
  q_online: arrays.Array,
  q_target: arrays.Array,
  transitions: returns.Transitions,
  trained: arrays.Array,
  recursion: returns.Recursion,
  *,
  learner: config_lib.LearnerConfig,
  num_actions: int,
) -> TDErrors:
  """Subtracts the online network's values of both labels from the targets.

  Args:
    q_online: float [T + 1, B, A'], the values of the online network.
    q_target: float [T + 1, B, A'], the values of the target network.
    transitions: the T transitions of each sequence.
    trained: float [T, B], 1 where transitions are learned from.
    recursion: computes returns on arrays of this kind.
    learner: the settings of the loss.
    num_actions: A, the number of actions.

  Returns:
    δ and δ', and where they count. No gradient reaches the targets.
  """
  chex.assert_equal_shape([q_online, q_target])
  chex.assert_equal_shape([*transitions, trained])
  chex.assert_equal_shape_prefix([q_online[1:], trained], trained.ndim)
  compute = targets.TARGETS[learner.loss]
  target = arrays.stop_gradient(
    compute(q_online, q_target, transitions, learner, recursion)
  )
  labels = relabelling.labels(
    transitions.choice,
    transitions.action,
    transitions.source,
    num_actions=num_actions,
    behavior_labels=learner.behavior_labels,
    duplicate_flights=learner.duplicate_flights,
  )
  own, duplicate = (
    target - returns.take(q_online[:-1], label)
    for label in (labels.choice, labels.duplicate)
  )
  return TDErrors(target, own, duplicate, trained, trained * labels.duplicated)


def sequence_priorities(errors: TDErrors, *, max_weight: float) -> arrays.Array:
  """Mixes the largest and the mean absolute TD error of each sequence.

    p = η max |δ| + (1 - η) mean |δ|

  Source: Kapturowski et al. 2019 (R2D2), Sec. 2.3. Differs from the paper:
  steps that only pad a sequence are left out of the mean.

  Args:
    errors: δ and δ', [T, B].
    max_weight: η, in [0, 1]; 0.9 in the paper.

  Returns:
    float [B], before the replay's exponent; 0 where nothing counts.
  """
  xp = arrays.namespace(errors.own)
  deltas = xp.concatenate([errors.own, errors.duplicate])
  weights = xp.concatenate([errors.trained, errors.duplicated])
  abs_errors = xp.where(weights > 0, xp.abs(deltas), 0.0)
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
