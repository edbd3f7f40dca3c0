"""Objects that live in a process of their own."""

import multiprocessing
from concurrent import futures
from typing import Any, Callable, List, TypeVar

_Result = TypeVar('_Result')

_made: List[Any] = []  # The object of such a process.


def _make(make: Callable[[], Any]) -> None:
  _made.append(make())


def _apply(function: Callable[[Any], _Result]) -> _Result:
  return function(_made[0])


class OtherProcess:
  """A process that makes an object, and calls functions with it."""

  def __init__(self, make: Callable[[], Any]):
    # A fork of a process that has loaded Reverb hangs.
    spawn = multiprocessing.get_context('spawn')
    self._pool = futures.ProcessPoolExecutor(1, spawn, _make, (make,))

  def call(
    self, function: Callable[[Any], _Result]
  ) -> 'futures.Future[_Result]':
    """Starts to call a function with the object."""
    return self._pool.submit(_apply, function)

  def close(self) -> None:
    """Ends the process."""
    self._pool.shutdown()
