"""Events for the signals that stop a program."""

import contextlib
import ctypes
import os
import platform
import queue as queue_lib
import signal
import subprocess
import threading

import pytest

from bt_acme.runtime import events, interrupts
from tests import python

_TGKILL = {'x86_64': 234, 'aarch64': 131}[platform.machine()]  # System call.


@contextlib.contextmanager
def signals():
  """Yields a queue that receives the signals."""
  queue = events.EventQueue()
  with interrupts.put_into(queue):
    yield queue


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
  with handler(signum, signal.SIG_DFL), signals() as queue:
    for _ in range(2):
      os.kill(os.getpid(), signum)
      assert queue.get(timeout=20) is signum
      assert interrupts.exit_code(signum) == code


def test_a_program_under_nohup_outlives_its_terminal():
  with handler(signal.SIGHUP, signal.SIG_IGN), signals() as queue:
    os.kill(os.getpid(), signal.SIGHUP)
    with pytest.raises(queue_lib.Empty):
      queue.get(timeout=0.05)


@pytest.mark.parametrize('again', [signal.SIGHUP, signal.SIGTERM])
@pytest.mark.parametrize('first', [signal.SIGINT, signal.SIGHUP])
def test_a_repeated_signal_does_not_kill_a_run_that_stops(first, again):
  with handler(again, lambda *_: pytest.fail('killed')):
    ended = pytest.raises(SystemExit, match='129')
    is_ctrl_c = first is signal.SIGINT
    outer = contextlib.nullcontext() if is_ctrl_c else ended
    with outer, interrupts.noted() as noted:
      for signum in (first, again, again):
        signal.raise_signal(signum)
      assert noted() is first


def test_exit_codes_are_kept_although_the_caller_ignores_them():
  with handler(signal.SIGCHLD, signal.SIG_IGN):
    with signals():
      assert subprocess.run(['false'], check=False).returncode == 1
    assert signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN


_ENDED = """
import gc, signal
from bt_acme.runtime import interrupts
interrupts.end_at_once()
gc.callbacks.append(lambda *args: signal.raise_signal(signal.SIGINT))
gc.collect()  # Drops exceptions of its callbacks.
print('continues')
"""


def test_a_signal_during_garbage_collection_ends_a_launch_script():
  done = python.run('-c', _ENDED)
  assert done.returncode == 130 and not done.stdout
  assert done.stderr.strip().startswith('Stopped by Ctrl-C. Rerun')
  assert done.stderr.count('\n') == 2  # The first one follows `^C`.


def test_previous_handlers_are_restored():
  handled = []
  with handler(signal.SIGTERM, lambda *_: handled.append('own')):
    with signals() as queue:
      timer = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGTERM))
      timer.start()
      assert queue.get(timeout=20) is signal.SIGTERM
      timer.join()
      with pytest.raises(queue_lib.Empty):
        queue.get(timeout=0)
    assert not handled
    os.kill(os.getpid(), signal.SIGTERM)
    assert handled == ['own']


def test_a_signal_that_another_thread_receives_is_an_event():
  ended = threading.Event()
  thread = threading.Thread(target=ended.wait)
  with signals() as queue:
    thread.start()
    arguments = _TGKILL, os.getpid(), thread.native_id, int(signal.SIGTERM)
    threading.Timer(0.2, ctypes.CDLL(None).syscall, arguments).start()
    assert queue.get(timeout=20) is signal.SIGTERM
    ended.set()
    thread.join()
