"""Contexts and clocks for tests that run nodes without Launchpad."""

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


class Clock:
  """A clock that a test advances."""

  def __init__(self):
    self.now = 100.0

  def __call__(self):
    return self.now
