"""The targets of the Q-values by name, and the TD errors that follow from them.

To add a loss, write a `TargetFunction` in a file of its own, and add a line to
`TARGETS` and its name to the choices of `LearnerConfig.loss`. The learner's
loss and the actors' priorities of new sequences both follow it then. This
module does not load rlax, so that acting does without it.
"""

from typing import Callable, Mapping, NamedTuple

from bt_acme import config as config_lib
from bt_acme.core import arrays, q_lambda, retrace, returns
from bt_acme.core.behavior_transfer import relabelling

# (q_online float [T + 1, B, A'], q_target float [T + 1, B, A'], transitions,
# settings, recursion) -> y, float [T, B], which means nothing where `valid` is
# 0. Values of the online and of the target network are those of the rescaled
# returns, and so are the targets. All arrays are JAX's, or all are NumPy's and
# without the axis B.
TargetFunction = Callable[
  [
    arrays.Array,
    arrays.Array,
    returns.Transitions,
    config_lib.LearnerConfig,
    returns.Recursion,
  ],
  arrays.Array,
]

# What `LearnerConfig.loss` can name.
TARGETS: Mapping[str, TargetFunction] = {
  'q_lambda': q_lambda.targets,
  'retrace': retrace.targets,
}


class TDErrors(NamedTuple):
  """TD errors of every transition under each of its labels.

  Attributes:
    own: float [T, B], δ, under the label of the transition itself.
    duplicate: float [T, B], δ', under the label of its duplicate.
    trained: float [T, B], 1 where δ counts: for real transitions, without those
      of a burn-in.
    duplicated: float [T, B], 1 where δ' counts.
  """

  own: arrays.Array
  duplicate: arrays.Array
  trained: arrays.Array
  duplicated: arrays.Array


def td_errors(
  q_online: arrays.Array,
  target: arrays.Array,
  labels: relabelling.Labels,
  trained: arrays.Array,
) -> TDErrors:
  """Subtracts the online network's values of both labels from the targets.

  Args:
    q_online: float [T + 1, B, A'].
    target: float [T, B].
    labels: the labels of each transition and its duplicate, [T, B].
    trained: float [T, B], 1 where transitions are learned from.

  Returns:
    δ and δ', and where they count.
  """
  own, duplicate = (
    target - returns.take(q_online[:-1], label)
    for label in (labels.choice, labels.duplicate)
  )
  return TDErrors(own, duplicate, trained, trained * labels.duplicated)
