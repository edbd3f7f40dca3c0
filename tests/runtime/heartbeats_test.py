"""Who is said to hang, and when."""

import os

from bt_acme.runtime import heartbeats

_LABELS = {'learner/0': 'learner', 'actor/0': 'actor', 'actor/1': 'actor'}


class Clock:
  def __init__(self):
    self.now = 100.0

  def __call__(self):
    return self.now


def watch_for(clock, watch, seconds):
  """Looks every second; returns who hung, and the second in which they did."""
  found = {}
  for second in range(1, seconds + 1):
    clock.now += 1
    found.update(dict.fromkeys(watch.expired(), second))
  return found


def test_servers_are_judged_before_those_who_wait_for_them():
  clock = Clock()
  watch = heartbeats.Watchdog(10, _LABELS, clock)
  watch.record('learner/0')
  watch.record('actor/0')
  # One that has given no sign yet may be compiling.
  assert watch_for(clock, watch, 10) == {}
  first = watch_for(clock, watch, 1)
  assert first == {'learner/0': 1}
  watch.clear('learner/0')
  watch.record('actor/1')
  assert watch_for(clock, watch, 5) == {'actor/0': 5}
  watch.record('actor/0')
  assert not watch.expired()


def test_time_in_which_the_launcher_stood_still_does_not_count():
  clock = Clock()
  watch = heartbeats.Watchdog(10, _LABELS, clock)
  watch.record('learner/0')
  assert watch_for(clock, watch, 5) == {}
  clock.now += 1000
  assert watch_for(clock, watch, 5) == {}
  assert watch_for(clock, watch, 3) != {}


def test_signs_are_given_once_a_second_and_to_a_supervisor_only(monkeypatch):
  monkeypatch.delenv(heartbeats.ATTEMPT_VARIABLE, raising=False)
  written = []
  monkeypatch.setattr(os, 'write', lambda number, data: written.append(data))
  clock = Clock()
  heartbeats.make_heartbeat(clock)()
  assert heartbeats.attempt() == 0 and not written
  monkeypatch.setenv(heartbeats.ATTEMPT_VARIABLE, '2')
  give = heartbeats.make_heartbeat(clock)
  for _ in range(25):
    give()
    clock.now += 0.1
  assert heartbeats.attempt() == 2
  assert written == [heartbeats.MARK] * 3
  heartbeats.report_stopping()
  heartbeats.report_saved()
  assert written[3:] == [heartbeats.STOP_MARK, heartbeats.SAVED_MARK]
  text = b'one\n' + b''.join(written) + b'two'
  assert heartbeats.split_heartbeats(text) == (b'one\ntwo', frozenset(written))
