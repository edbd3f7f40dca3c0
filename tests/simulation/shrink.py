"""Finds a short history with the same failure as a given history."""

from typing import Callable, List, Optional, Sequence

from tests.simulation import session

Fails = Callable[[session.History], Optional[str]]


def shrink(history: session.History, fails: Fails) -> session.History:
  """Removes faults while the history still fails in the same way.

  Args:
    history: a history that fails.
    fails: plays a history and returns the kind of its failure, if any.
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
  """Removes runs of `size` consecutive faults wherever possible."""
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
  """Parses the comma-separated fault numbers of a command."""
  return [int(number) for number in text.split(',')] if text else []


def numbers_of(
  history: session.History, whole: session.History
) -> Sequence[int]:
  """Returns the indices of a history's faults in the whole history."""
  return [i for i, f in enumerate(whole.faults) if f in history.faults]
