"""Fetches what the learner publishes."""

from typing import Any, List, Optional, Protocol, Sequence

from bt_acme import assembly
from bt_acme.acting import vector_actor


class VariableSource(Protocol):
  """A learner, here or in another process; Acme's interface."""

  def get_variables(self, names: Sequence[str]) -> List[Any]:
    """Returns what the fields of `assembly.Variables` of these names hold."""


def fetch(source: VariableSource) -> assembly.Variables:
  """Asks a learner for its parameters."""
  names = list(assembly.Variables._fields)
  return assembly.Variables(*source.get_variables(names))


class VariableClient:
  """Keeps an actor's parameters fresh.

  The parameters are fetched every `period` turns, once for all environments of
  the actor.
  """

  def __init__(
    self,
    source: VariableSource,
    actor: vector_actor.VectorActor,
    period: int,
  ):
    """Fetches the first parameters.

    Args:
      source: the learner.
      actor: the actor that acts with the parameters.
      period: the number of turns between two fetches.
    """
    self._source = source
    self._actor = actor
    self._period = period
    self._turns: Optional[int] = None
    self.update()

  def update(self) -> None:
    """Counts a turn, and fetches if `period` turns have passed."""
    if self._turns is None or self._turns >= self._period:
      self._actor.update_variables(fetch(self._source))
      self._turns = 0
    self._turns += 1

  def restore(self, turns: int) -> None:
    """Restores the count of turns, for an actor that has its parameters."""
    self._turns = turns % self._period + 1
