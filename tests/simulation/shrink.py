"""Finds the shortest history that fails as another one does."""

from typing import Callable, List, Optional, Sequence

from tests.simulation import session

Fails = Callable[[session.History], Optional[str]]


def shrink(history: session.History, fails: Fails) -> session.History:
  """Leaves out faults for as long as the history fails in the same way.

  Args:
    history: a history that fails.
    fails: plays a history; returns the kind of its failure, None without one.
  """
  kind = fails(history)
  assert kind is not None
  size = max(1, len(history.faults) // 2)
  while True:
    history = _without_parts(history, size, lambda h: fails(h) == kind)
    if size == 1:
      return history
    size //= 2


def _without_parts(
  history: session.History, size: int, still: Callable[..., bool]
) -> session.History:
  """Leaves out so many faults that follow each other, wherever it can."""
  first = 0
  while first < len(history.faults):
    faults = history.faults[:first] + history.faults[first + size :]
    shorter = history._replace(faults=faults)
    if still(shorter):
      history = shorter
    else:
      first += size
  return history


def parse_kept(text: str) -> List[int]:
  """Returns the numbers of the faults that a command names."""
  return [int(number) for number in text.split(',')] if text else []


def numbers_of(
  history: session.History, whole: session.History
) -> Sequence[int]:
  """Returns which faults of a history are left in a shorter one."""
  return [i for i, f in enumerate(whole.faults) if f in history.faults]
