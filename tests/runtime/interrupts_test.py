"""Events for the signals that stop a program."""

import contextlib
import os
import signal

import pytest

from bt_acme.runtime import events, interrupts


@contextlib.contextmanager
def handler(signum, action):
  previous = signal.signal(signum, action)
  try:
    yield
  finally:
    signal.signal(signum, previous)


@pytest.mark.parametrize(
  'signum, code',
  [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)],
)
def test_each_signal_is_an_event(signum, code):
  # The tests themselves may run under nohup.
  with handler(signum, signal.SIG_DFL), events.EventQueue() as queue:
    interrupts.post_to(queue)
    for _ in range(2):
      os.kill(os.getpid(), signum)
      assert queue.get(20) is signum
      assert interrupts.exit_code(signum) == code


def test_a_program_under_nohup_outlives_its_terminal():
  with (
    handler(signal.SIGHUP, signal.SIG_IGN),
    events.EventQueue() as queue,
  ):
    interrupts.post_to(queue)
    os.kill(os.getpid(), signal.SIGHUP)
    assert queue.get(0.05) is None
