"""Training labels of transitions and of their duplicates.

"Transitions collected with π_p are duplicated and relabelled with the primitive
action that π_p took" (Campos et al. 2021, arXiv:2102.13515, App.). Replay does
not store the duplicate. A duplicate shares state, history and target with its
original, so the loss needs only one more lookup in the Q-values and no second
unroll.

The choice of each step, by which a flight is labelled, comes from `bt_actor`.
The learner labels transitions on a device, with JAX arrays. Actors label them
on the host, with NumPy arrays, to compute the priorities of new sequences.
"""

from bt_acme import config as config_lib
from bt_acme.core import arrays, types


def labels(
  transitions: types.SequenceBatch,
  learner: config_lib.LearnerConfig,
  num_actions: int,
) -> tuple[arrays.Array, arrays.Array, arrays.Array]:
  """Returns the choices whose values transitions and their duplicates train.

  Args:
    transitions: the transitions, whose choice, action and source are read.
    learner: the settings `behavior_labels`, the labels that train a behavior's
      transitions, and `duplicate_flights`: whether the transitions of flights
      count as collected with π_p, which the paper does not specify. If not,
      they are trained only under their primitive action.
    num_actions: A, the number of actions.

  Returns:
    The label of each transition itself, int32 [T, B], one of A + K; the label
    of its duplicate, int32 [T, B], the executed action; and float32 [T, B], 1
    where a duplicate exists, else 0. Without extra actions there are no
    duplicates, because a flight's choice is then its primitive action.
  """
  choice, action = transitions.choice, transitions.action
  source = transitions.source
  xp = arrays.namespace(choice)
  if learner.behavior_labels == 'primitive':
    choice = action  # This does not change the agent's own primitive choices.
  if not learner.duplicate_flights:
    choice = xp.where(source == types.FLIGHT, action, choice)
  delegated = (source != types.OWN) & (choice >= num_actions)
  if learner.behavior_labels == 'extra':
    delegated = xp.zeros_like(delegated)
  return choice, action, delegated.astype(xp.float32)
