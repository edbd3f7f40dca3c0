"""Contexts of threads: nodes run in one process, without Launchpad."""

import threading

from bt_acme.runtime import context as context_lib


class Stop(threading.Event):
  """The notice to stop, and the handlers that wait for it."""

  def __init__(self):
    super().__init__()
    self._handlers = []

  def register(self, handler):
    self._handlers.append(handler)

  def set(self):
    super().set()
    for handler in self._handlers:
      handler()


def make(stop=None, **clients):
  """A context whose clients are the nodes themselves."""
  stop = stop or Stop()
  return context_lib.Context(stop.wait, stop.register, **clients)
