"""A queue filled by threads, pipes and signals."""

import ctypes
import functools
import os
import platform
import signal
import threading
import time

import pytest

from bt_acme.runtime import events

_TGKILL = {'x86_64': 234, 'aarch64': 131}[platform.machine()]  # System call.


@pytest.fixture(name='queue')
def make_queue():
  with events.EventQueue() as queue:
    yield queue


def test_events_come_in_order_or_time_out(queue):
  assert queue.get(0) is None
  start = time.monotonic()
  assert queue.get(0.05) is None
  assert 0.04 < time.monotonic() - start < 5
  for event in (1, 2, 3):
    queue.post(event)
  assert [queue.get(), queue.get(0), queue.get(-1.0)] == [1, 2, 3]
  assert queue.get(0) is None


def test_events_of_other_threads_wake_up_the_queue(queue):
  """Posts more events than the pipe for wake-ups can hold."""
  num = 100_000
  thread = threading.Thread(target=lambda: [queue.post(i) for i in range(num)])
  timer = threading.Timer(0.05, thread.start)
  timer.start()
  assert [queue.get(20) for _ in range(num)] == list(range(num))
  thread.join()


def test_a_readable_pipe_is_read_until_it_is_unwatched(queue):
  reader, writer = os.pipe()

  def read():
    queue.post(os.read(reader, 1))

  queue.watch(reader, read)
  os.write(writer, b'abc')
  assert [queue.get(5) for _ in range(2)] == [b'a', b'b']
  queue.unwatch(reader)
  assert queue.get(0) is None
  os.close(reader)
  os.close(writer)


def test_a_callback_may_end_the_watch_of_another_pipe(queue):
  pipes = [os.pipe() for _ in range(2)]
  readers = [reader for reader, _ in pipes]

  def read(index):
    queue.unwatch(readers[1 - index])
    queue.post(index)

  for index, (reader, writer) in enumerate(pipes):
    queue.watch(reader, functools.partial(read, index))
    os.write(writer, b'x')
  assert queue.get(5) in (0, 1)


def test_a_signal_wakes_up_the_queue_and_its_handler_is_restored():
  handled = []
  previous = signal.signal(signal.SIGUSR2, lambda *_: handled.append('own'))
  try:
    with events.EventQueue() as queue:
      queue.on_signal(signal.SIGUSR2, functools.partial(queue.post, 'queued'))
      timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGUSR2))
      timer.start()
      assert queue.get(20) == 'queued' and queue.get(0) is None
      timer.join()
    assert not handled
    os.kill(os.getpid(), signal.SIGUSR2)
    assert handled == ['own']
  finally:
    signal.signal(signal.SIGUSR2, previous)


def test_no_signal_is_lost_among_many_events(queue):
  queue.on_signal(signal.SIGUSR2, functools.partial(queue.post, 'queued'))
  num = 100_000  # More wake-ups than a pipe holds.
  for i in range(num):
    queue.post(i)
  os.kill(os.getpid(), signal.SIGUSR2)
  assert [queue.get() for _ in range(num)] == list(range(num))
  assert queue.get(20) == 'queued'


def test_a_signal_that_another_thread_receives_wakes_up_the_queue(queue):
  queue.on_signal(signal.SIGUSR2, functools.partial(queue.post, 'queued'))
  ended = threading.Event()
  thread = threading.Thread(target=ended.wait)
  thread.start()
  timer = threading.Timer(
    0.2,
    ctypes.CDLL(None).syscall,
    (_TGKILL, os.getpid(), thread.native_id, int(signal.SIGUSR2)),
  )
  timer.start()
  assert queue.get(20) == 'queued'
  ended.set()
  thread.join()


def test_a_closed_queue_drops_late_events():
  with events.EventQueue() as queue:
    pass
  queue.post('late')
