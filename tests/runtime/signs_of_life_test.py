"""Who is said to hang, and when."""

import os

from bt_acme.runtime import signs_of_life

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
    found.update(dict.fromkeys(watch.hung(), second))
  return found


def test_servers_are_judged_before_those_who_wait_for_them():
  clock = Clock()
  watch = signs_of_life.Watch(10, _LABELS, clock)
  watch.hear('learner/0')
  watch.hear('actor/0')
  # One that has given no sign yet may be compiling.
  assert watch_for(clock, watch, 10) == {}
  first = watch_for(clock, watch, 1)
  assert first == {'learner/0': 1}
  watch.forget('learner/0')
  watch.hear('actor/1')
  assert watch_for(clock, watch, 5) == {'actor/0': 5}
  watch.hear('actor/0')
  assert not watch.hung()


def test_time_in_which_the_launcher_stood_still_does_not_count():
  clock = Clock()
  watch = signs_of_life.Watch(10, _LABELS, clock)
  watch.hear('learner/0')
  assert watch_for(clock, watch, 5) == {}
  clock.now += 1000
  assert watch_for(clock, watch, 5) == {}
  assert watch_for(clock, watch, 3) != {}


def test_signs_are_given_once_a_second_and_to_a_supervisor_only(monkeypatch):
  monkeypatch.delenv(signs_of_life.LIFE_VARIABLE, raising=False)
  written = []
  monkeypatch.setattr(os, 'write', lambda number, data: written.append(data))
  clock = Clock()
  signs_of_life.giver(clock)()
  assert signs_of_life.life() == 0 and not written
  monkeypatch.setenv(signs_of_life.LIFE_VARIABLE, '2')
  give = signs_of_life.giver(clock)
  for _ in range(25):
    give()
    clock.now += 0.1
  assert signs_of_life.life() == 2
  assert written == [signs_of_life.MARK] * 3
  signs_of_life.say_that_it_stops()
  signs_of_life.say_that_it_has_saved()
  assert written[3:] == [signs_of_life.STOP_MARK, signs_of_life.SAVED_MARK]
  text = b'one\n' + b''.join(written) + b'two'
  assert signs_of_life.take_out(text) == (b'one\ntwo', frozenset(written))
