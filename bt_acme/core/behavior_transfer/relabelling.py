"""The labels under which a transition is trained, and its duplicates.

"Transitions collected with π_p are duplicated and relabelled with the primitive
action that π_p took" (Campos et al. 2021, arXiv:2102.13515, App.). Replay does
not store the duplicate. It shares state, history and target with its original,
so that it costs the loss one more look-up in the Q-values and no second unroll.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from bt_acme.core import types


class Labels(NamedTuple):
  """The labels under which each transition is trained.

  Attributes:
    choice: int32 [T, B], the label of the transition itself.
    duplicate: int32 [T, B], the label of its duplicate, which is the executed
      action.
    duplicated: float32 [T, B], 1 where there is a duplicate, else 0.
  """

  choice: jax.Array
  duplicate: jax.Array
  duplicated: jax.Array


def labels(
  choice: jax.Array,
  action: jax.Array,
  source: jax.Array,
  *,
  num_actions: int,
  behavior_labels: str = 'both',
  duplicate_flights: bool,
) -> Labels:
  """Labels transitions and their duplicates.

  Args:
    choice: int32 [T, B], one of A + K.
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
  if behavior_labels == 'primitive':
    choice = action  # The agent's own choices are primitive anyway.
  if not duplicate_flights:
    choice = jnp.where(source == types.FLIGHT, action, choice)
  delegated = (source != types.OWN) & (choice >= num_actions)
  if behavior_labels == 'extra':
    delegated = jnp.zeros_like(delegated)
  return Labels(choice, action, delegated.astype(jnp.float32))
