"""Nodes that send no heartbeats, in virtual time."""

import queue as queue_lib
import signal

import pytest

pytest.importorskip('launchpad', reason='needs the full environment')

import launchpad as lp

from bt_acme.runtime import events, heartbeats, restarts, supervisor
from bt_acme.runtime.engines import base

_KILLED = -signal.SIGKILL


class Queue:
  """Events at given times; `get` advances the time."""

  def __init__(self):
    self.now = 0.0
    self._events = []  # Pairs of time and event.

  def clock(self):
    return self.now

  def put(self, event, seconds=0.0):
    self._events.append((self.now + seconds, event))

  def get(self, timeout=None):
    end = self.now + (1e9 if timeout is None else timeout)
    time, event = min(self._events, default=(end, None), key=lambda e: e[0])
    if time >= end:
      self.now = end
      raise queue_lib.Empty
    self._events.remove((time, event))
    self.now = max(self.now, time)
    return event


class Engine(base.Engine):
  """Records starts and kills with their times."""

  exits = True  # Whether the exits of killed nodes are posted.

  def __init__(self, queue, end):
    super().__init__(queue)
    self.calls = []
    self._end = end

  def place(self, title, num_ports):
    self.calls.append((self._queue.now, 'place', title))
    self._queue.put(events.NodeScheduled(title, []))

  def start(self, title, executable, environment):
    self.calls.append((self._queue.now, 'start', title))
    return 'process 1'

  def signal(self, title, signum):
    if signum == signal.SIGKILL:
      self.calls.append((self._queue.now, 'kill', title))
    if self.exits or signum == signal.SIGTERM:
      self._queue.put(events.NodeExited(title, -signum))

  def release(self, title):
    pass

  def of(self, what):
    """Returns the times and titles of calls before the program stops."""
    return [
      (when, title)
      for when, call, title in self.calls
      if call == what and when < self._end
    ]


@pytest.fixture(name='queue')
def make_queue():
  return Queue()


def watch(queue, tmp_path, seconds, exits=True):
  """Runs a program for some seconds, with a heartbeat timeout of ten."""
  program = lp.Program('test')
  for label in ('learner', 'actor', 'coordinator'):
    with program.group(label):
      program.add_node(lp.PyNode(print))
  engine = Engine(queue, seconds)
  engine.exits = exits
  queue.put(events.NodeExited('coordinator/0', 0), seconds)
  code = supervisor.Supervisor(
    lambda: engine,
    queue,
    workdir=tmp_path,
    environments={},
    ports={},
    main_label='coordinator',
    checked_labels=(),
    grace_seconds=1.0,
    policy=restarts.RestartPolicy(
      9, {'learner': (), 'actor': ()}, watchdog_seconds=10.0
    ),
    clock=queue.clock,
  ).run(program)
  assert code == 0
  return engine


def beat(queue, title, *times):
  for time in times:
    queue.put(events.Output(title, 'heartbeats', heartbeats.MARK), time)


def test_servers_are_killed_before_the_nodes_that_wait_for_them(
  queue, tmp_path
):
  beat(queue, 'learner/0', 1.0)
  beat(queue, 'actor/0', 1.0)
  engine = watch(queue, tmp_path, 40.0)
  (learner, _), (actor, _) = engine.of('kill')
  assert 11 < learner < 13 and 15 < actor < 17
  # The new attempts, and the coordinator, have sent no heartbeat: they may be
  # compiling.
  assert [title for _, title in engine.of('start')][3:] == [
    *('learner/0', 'actor/0'),
  ]


def test_heartbeats_keep_a_node_alive(queue, tmp_path):
  beat(queue, 'learner/0', *range(1, 40, 9))
  assert not watch(queue, tmp_path, 40.0).of('kill')


def test_time_in_which_the_launcher_was_suspended_does_not_count(
  queue, tmp_path, monkeypatch
):
  beat(queue, 'learner/0', 1.0)
  get = queue.get

  def suspended(timeout=None):
    if 5 < queue.now < 1000:
      queue.now += 1000
      raise queue_lib.Empty
    return get(timeout)

  monkeypatch.setattr(queue, 'get', suspended)
  ((when, _),) = watch(queue, tmp_path, 1030.0).of('kill')
  assert 1010 < when < 1013


def test_a_killed_node_whose_exit_is_not_posted_is_lost(queue, tmp_path):
  beat(queue, 'actor/0', 1.0)
  engine = watch(queue, tmp_path, 100.0, exits=False)
  (killed, _), *_ = engine.of('kill')
  *_, (placed, title) = engine.of('place')
  assert title == 'actor/0' and 59 < placed - killed < 62
  assert engine.of('start')[-1] == (placed, 'actor/0')
