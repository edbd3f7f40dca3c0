"""Heartbeats, and the nodes that are considered hung without them."""

import os

import pytest

from bt_acme.runtime import heartbeats
from bt_acme.runtime.engines import node_process

_LABELS = {'learner/0': 'learner', 'actor/0': 'actor', 'actor/1': 'actor'}


class Clock:
  def __init__(self):
    self.now = 100.0

  def __call__(self):
    return self.now


def watch_for(clock, watch, seconds):
  """Checks every second; returns the hung nodes, and the second of each."""
  found = {}
  for second in range(1, seconds + 1):
    clock.now += 1
    found.update(dict.fromkeys(watch.expired(), second))
  return found


def test_servers_expire_before_the_nodes_that_wait_for_them():
  clock = Clock()
  watch = heartbeats.Watchdog(10, _LABELS, clock)
  watch.record('learner/0')
  watch.record('actor/0')
  # A node that has never sent a heartbeat may be compiling.
  assert watch_for(clock, watch, 10) == {}
  first = watch_for(clock, watch, 1)
  assert first == {'learner/0': 1}
  watch.clear('learner/0')
  watch.record('actor/1')
  assert watch_for(clock, watch, 5) == {'actor/0': 5}
  watch.record('actor/0')
  assert not watch.expired()


def test_time_in_which_the_launcher_was_suspended_does_not_count():
  clock = Clock()
  watch = heartbeats.Watchdog(10, _LABELS, clock)
  watch.record('learner/0')
  assert watch_for(clock, watch, 5) == {}
  clock.now += 1000
  assert watch_for(clock, watch, 5) == {}
  assert watch_for(clock, watch, 3) != {}


@pytest.fixture(name='forget')
def forget_the_pipe():
  """Makes this process look for its pipe again."""
  heartbeats._descriptor.cache_clear()
  yield heartbeats._descriptor.cache_clear
  heartbeats._descriptor.cache_clear()


def test_heartbeats_are_only_sent_to_a_supervisor_and_once_a_second(
  monkeypatch, forget
):
  for name in (heartbeats.ATTEMPT_VARIABLE, node_process.PIPE_VARIABLE):
    monkeypatch.delenv(name, raising=False)
  clock = Clock()
  heartbeats.make_heartbeat(clock)()
  heartbeats.report_saved()
  assert heartbeats.attempt() == 0 and not heartbeats.is_supervised()
  forget()
  reader, writer = os.pipe()
  monkeypatch.setenv(heartbeats.ATTEMPT_VARIABLE, '2')
  monkeypatch.setenv(node_process.PIPE_VARIABLE, str(writer))
  send = heartbeats.make_heartbeat(clock)
  assert heartbeats.attempt() == 2 and heartbeats.is_supervised()
  # Child processes do not inherit the variable.
  assert node_process.PIPE_VARIABLE not in os.environ
  for _ in range(25):
    send()
    clock.now += 0.1
  assert os.read(reader, 100) == heartbeats.MARK * 3
  heartbeats.report_stopping()
  heartbeats.report_saved()
  assert os.read(reader, 100) == heartbeats.STOP_MARK + heartbeats.SAVED_MARK
  os.close(reader)
  heartbeats.report_saved()  # The launcher is gone.
  os.close(writer)
