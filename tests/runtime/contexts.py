"""Contexts and clocks for tests that run nodes without Launchpad."""

import threading

from bt_acme.runtime import node


def make(stop=None, **clients):
  """Returns a context whose clients are the nodes themselves."""
  stop = stop or threading.Event()
  return node.Context(stop.wait, lambda handler: None, **clients)


class Clock:
  """A clock that a test advances."""

  def __init__(self):
    self.now = 100.0

  def __call__(self):
    return self.now
