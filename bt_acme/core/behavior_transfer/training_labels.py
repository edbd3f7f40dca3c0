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

from bt_acme.core import arrays, types


def labels(
  choice: arrays.Array,
  action: arrays.Array,
  source: arrays.Array,
  *,
  num_actions: int,
  behavior_labels: str = 'both',
  duplicate_flights: bool,
) -> tuple[arrays.Array, arrays.Array, arrays.Array]:
  """Returns the choices whose values transitions and their duplicates train.

  Args:
    choice: int32 [T, B], one of A + K. All arrays may also be [T].
    action: int32 [T, B], the executed primitive action.
    source: uint8 [T, B], one of OWN, EXTRA, FLIGHT.
    num_actions: A, the number of actions.
    behavior_labels: the labels that train a behavior's transitions: `both`, or
      only `extra` or `primitive`.
    duplicate_flights: whether the transitions of flights count as collected
      with π_p, which the paper does not specify. If not, they are trained only
      under their primitive action.

  Returns:
    The label of each transition itself, int32 [T, B], one of A + K; the label
    of its duplicate, int32 [T, B], the executed action; and float32 [T, B], 1
    where a duplicate exists, else 0. Without extra actions there are no
    duplicates, because a flight's choice is then its primitive action.
  """
  xp = arrays.namespace(choice)
  if behavior_labels == 'primitive':
    choice = action  # This does not change the agent's own primitive choices.
  if not duplicate_flights:
    choice = xp.where(source == types.FLIGHT, action, choice)
  delegated = (source != types.OWN) & (choice >= num_actions)
  if behavior_labels == 'extra':
    delegated = xp.zeros_like(delegated)
  return choice, action, delegated.astype(xp.float32)
