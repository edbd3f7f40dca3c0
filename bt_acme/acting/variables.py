"""Fetches the parameters that the learner publishes."""

from typing import Any

from bt_acme import assembly
from bt_acme.acting import vector_actor


def fetch(source: Any) -> assembly.Variables:
  """Fetches the parameters from a learner, an `acme.VariableSource`."""
  names = list(assembly.Variables._fields)
  return assembly.Variables(*source.get_variables(names))


class VariableClient:
  """Updates an actor's parameters regularly.

  The parameters are fetched every `period` vector steps, once for all
  environments of the actor.
  """

  def __init__(
    self,
    source: Any,
    actor: vector_actor.VectorActor,
    period: int,
  ):
    """Initializes the client and fetches the first parameters.

    Args:
      source: the learner, an `acme.VariableSource`.
      actor: the actor that acts with the parameters.
      period: the number of vector steps between two fetches.
    """
    self._source = source
    self._actor = actor
    self._period = period
    self._turns = period
    self.update()

  def update(self) -> None:
    """Counts a vector step; fetches if `period` vector steps have passed."""
    if self._turns >= self._period:
      self._actor.update_variables(fetch(self._source))
      self._turns = 0
    self._turns += 1

  def restore(self, turns: int) -> None:
    """Restores the step count of an actor whose parameters are restored."""
    self._turns = turns % self._period + 1
