"""Objects in separate processes."""

import multiprocessing
from concurrent import futures
from typing import Any, Callable, List, TypeVar

_Result = TypeVar('_Result')

_made: List[Any] = []  # The object that this process made.


def _make(make: Callable[[], Any]) -> None:
  _made.append(make())


def _apply(function: Callable[[Any], _Result]) -> _Result:
  return function(_made[0])


class OtherProcess:
  """A process that makes an object and calls functions with it."""

  def __init__(self, make: Callable[[], Any]):
    # Forking hangs once Reverb is loaded.
    spawn = multiprocessing.get_context('spawn')
    self._pool = futures.ProcessPoolExecutor(1, spawn, _make, (make,))

  def call(
    self, function: Callable[[Any], _Result]
  ) -> 'futures.Future[_Result]':
    """Calls a function with the object, asynchronously."""
    return self._pool.submit(_apply, function)

  def close(self) -> None:
    """Shuts down the process."""
    self._pool.shutdown()
