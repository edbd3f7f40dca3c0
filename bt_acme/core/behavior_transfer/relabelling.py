"""The labels under which a transition is trained, and its duplicates.

"Transitions collected with π_p are duplicated and relabelled with the primitive
action that π_p took" (Campos et al. 2021, arXiv:2102.13515, App.). Replay does
not store the duplicate. It shares state, history and target with its original,
so that it costs the loss one more look-up in the Q-values and no second unroll.

The learner labels on a device, and actors label on the host, for the priorities
of new sequences; so the arrays are JAX's or NumPy's.
"""

from typing import NamedTuple

from bt_acme.core import arrays, types


class Labels(NamedTuple):
  """The labels under which each transition is trained.

  Attributes:
    choice: int32 [T, B], the label of the transition itself.
    duplicate: int32 [T, B], the label of its duplicate, which is the executed
      action.
    duplicated: float32 [T, B], 1 where there is a duplicate, else 0.
  """

  choice: arrays.Array
  duplicate: arrays.Array
  duplicated: arrays.Array


def labels(
  choice: arrays.Array,
  action: arrays.Array,
  source: arrays.Array,
  *,
  num_actions: int,
  behavior_labels: str = 'both',
  duplicate_flights: bool,
) -> Labels:
  """Labels transitions and their duplicates.

  Args:
    choice: int32 [T, B], one of A + K. All arrays may also be [T].
    action: int32 [T, B], the executed primitive action.
    source: uint8 [T, B], one of OWN, EXTRA, FLIGHT.
    num_actions: A, the number of actions.
    behavior_labels: the labels under which a behavior's transitions are
      trained: `both`, or `extra` or `primitive` alone.
    duplicate_flights: whether a flight's transitions count as collected with
      π_p, which the paper leaves open. If not, they are trained under their
      primitive action alone.

  Returns:
    The labels. Without extra actions nothing is duplicated, because a flight's
    choice is then its primitive action.
  """
  xp = arrays.namespace(choice)
  if behavior_labels == 'primitive':
    choice = action  # The agent's own choices are primitive anyway.
  if not duplicate_flights:
    choice = xp.where(source == types.FLIGHT, action, choice)
  delegated = (source != types.OWN) & (choice >= num_actions)
  if behavior_labels == 'extra':
    delegated = xp.zeros_like(delegated)
  return Labels(choice, action, delegated.astype(xp.float32))
