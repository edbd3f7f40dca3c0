"""Tests of the queue of events."""

import contextlib
import queue as queue_lib
import signal
import threading

from bt_acme.runtime import events


def test_an_empty_queue_waits_no_longer_than_its_timeout():
  """With `queue.SimpleQueue` alone, this waits forever after a few events."""
  queue = events.EventQueue()

  def play():
    for _ in range(100_000):
      queue.put(signal.SIGINT)
      assert queue.get(timeout=9.0) == signal.SIGINT
      with contextlib.suppress(queue_lib.Empty):
        queue.get(timeout=0.0)

  thread = threading.Thread(target=play, daemon=True)
  thread.start()
  thread.join(timeout=60)
  assert not thread.is_alive()
