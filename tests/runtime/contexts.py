"""Contexts for tests that run nodes as threads, without Launchpad."""

import threading

from bt_acme.runtime import node


class Stop(threading.Event):
  """Event that calls the registered stop handlers when it is set."""

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
  """Returns a context whose clients are the nodes themselves."""
  stop = stop or Stop()
  return node.Context(stop.wait, stop.register, **clients)
