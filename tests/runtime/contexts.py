"""Contexts for tests that run nodes without Launchpad."""

import threading

from bt_acme.runtime import node


def make(stop=None, **clients):
  """Returns a context whose clients are the nodes themselves."""
  stop = stop or threading.Event()
  return node.Context(stop.wait, lambda handler: None, **clients)
