"""Objects in separate processes."""

import multiprocessing
import os
import pathlib
import pickle
import time
from collections.abc import Callable
from concurrent import futures
from typing import Any, TypeVar

import cloudpickle

_Result = TypeVar('_Result')

_made: list[Any] = []  # The object that this process made.


def _make(make: bytes) -> None:
  _made.append(pickle.loads(make)())


def _apply(function: bytes) -> Any:
  return pickle.loads(function)(_made[0])


class OtherProcess(futures.ProcessPoolExecutor):
  """A process that makes an object and calls functions with it.

  Some functions need an object that serves Courier or Reverb.
  """

  def __init__(self, make: Callable[[], Any]):
    # Forking hangs once Reverb is loaded.
    spawn = multiprocessing.get_context('spawn')
    super().__init__(1, spawn, _make, (cloudpickle.dumps(make),))

  def call(
    self, function: Callable[[Any], _Result]
  ) -> 'futures.Future[_Result]':
    """Calls a function with the object, asynchronously."""
    return self.submit(_apply, cloudpickle.dumps(function))

  @property
  def address(self) -> str:
    """The address of the server."""
    return f'localhost:{self.call(lambda server: server.port).result()}'

  def resident_bytes(self) -> int:
    """Returns the resident memory of the process."""
    statm = pathlib.Path('/proc/self/statm')
    words = self.call(lambda server: statm.read_text()).result().split()
    return int(words[1]) * os.sysconf('SC_PAGE_SIZE')

  def processor_seconds(self) -> float:
    """Returns the processor time that the process has used."""
    return self.call(lambda server: time.process_time()).result()
