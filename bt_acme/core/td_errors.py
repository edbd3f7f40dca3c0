"""TD errors: the difference between a target and the online value.

The learner computes them on a device, with JAX arrays [T, B]. Actors compute
them for new sequences on the host, with NumPy arrays [T].
"""

from typing import NamedTuple

from bt_acme import config as config_lib
from bt_acme.core import arrays, return_recursion, targets, types
from bt_acme.core.behavior_transfer import training_labels


class TDErrors(NamedTuple):
  """TD errors of every transition under its own and its duplicate's label.

  Attributes:
    target: float [T, B], the target of both.
    own: float [T, B], δ, under the label of the transition itself.
    duplicate: float [T, B], δ', under the label of its duplicate.
    trained: float [T, B], 1 where δ counts: valid transitions outside the
      burn-in.
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
  transitions: types.SequenceBatch,
  trained: arrays.Array,
  recursion: return_recursion.Recursion,
  *,
  learner: config_lib.LearnerConfig,
  num_actions: int,
) -> TDErrors:
  """Computes the TD errors: targets minus the online values of both labels.

  Args:
    q_online: float [T + 1, B, A'], the values of the online network.
    q_target: float [T + 1, B, A'], the values of the target network.
    transitions: the T transitions of each sequence, including the burn-in.
    trained: float [T, B], 1 where transitions are trained on.
    recursion: computes returns for arrays of this type.
    learner: the settings of the loss.
    num_actions: A, the number of actions.

  Returns:
    δ and δ', and masks of where they count. The targets block the gradient.
  """
  compute = targets.TARGETS[learner.loss]
  target = arrays.stop_gradient(
    compute(q_online, q_target, transitions, learner, recursion)
  )
  *labels, duplicated = training_labels.labels(
    transitions, learner, num_actions
  )
  own, duplicate = (
    target - return_recursion.take(q_online[:-1], label) for label in labels
  )
  return TDErrors(target, own, duplicate, trained, trained * duplicated)
