"""Failures that a program survives, on an engine that runs no processes.

A test scripts the attempts of each node. Attempts without a script run until
they are told to stop.
"""

import os
import signal
import threading
import time

import pytest

pytest.importorskip('launchpad', reason='needs the full environment')

import launchpad as lp

from bt_acme.runtime import (
  events,
  executables,
  heartbeats,
  launcher,
  node_state,
  restarts,
  supervisor,
)
from bt_acme.runtime.engines import base

_KILLED = -signal.SIGKILL
_TITLES = ('learner/0', 'server/0', 'actor/0', 'actor/1', 'coordinator/0')


class Scripted(base.Engine):
  """Calls the functions of `script`: by title, one for each attempt."""

  script = {}
  started = []  # Titles and attempts, over all programs.
  killed = []
  placed = []
  released = []  # Before the program stops.
  # Labels of nodes that ignore the first program's request to stop.
  deaf = ()

  # Titles of nodes that listen, and by title the slot that is lost immediately.
  servers = ()
  unlucky = {}

  def place(self, title, num_ports):
    self.placed.append(title)
    if self.unlucky.get(title) == self.placed.count(title):
      reason = 'could not be scheduled: its machine was lost.'
      self._queue.put(events.NodeExited(title, _KILLED, reason, lost=True))
      return
    addresses = ['here:1'] if title in self.servers else []
    self._queue.put(events.NodeScheduled(title, addresses))

  def start(self, title, executable, environment):
    attempt = environment[heartbeats.ATTEMPT_VARIABLE]
    self.started.append(f'{title} {attempt}')
    attempts = self.script.get(title, [])
    if attempts:
      attempts.pop(0)(self, title)
    return 'process 1'

  def signal(self, title, signum):
    if signum == signal.SIGKILL:
      self.killed.append(title)
    is_deaf = title.startswith(self.deaf) and len(self.started) <= len(_TITLES)
    if signum == signal.SIGKILL or not is_deaf:
      self.end(title, -signum)

  def release(self, title):
    self.released.append(title)

  def end(self, title, code, lost=False):
    self._queue.put(events.NodeExited(title, code, lost=lost))

  def print(self, title, text, stream='stdout'):
    self._queue.put(events.Output(title, stream, text))

  def send(self, title, marks):
    self._queue.put(events.Output(title, 'heartbeats', marks))


def send(mark):
  return lambda engine, title: engine.send(title, mark)


def work(engine, title):
  engine.print(title, b'hello\n')
  engine.send(title, heartbeats.MARK)


stops = send(heartbeats.STOP_MARK)
save = send(heartbeats.SAVED_MARK)


def end(code, node=''):
  return lambda engine, title: engine.end(node or title, code)


def lose(engine, title):
  engine.end(title, _KILLED, lost=True)


def refuse(engine, title):
  raise OSError('no file')


def fail(engine, title):
  engine.print(title, b'Traceback ...\nOSError: no disk\n', stream='stderr')
  engine.end(title, 1)


def after(*parts):
  return lambda engine, title: [part(engine, title) for part in parts]


def interrupt(engine, title):
  os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture(name='launch')
def make_launch(tmp_path, monkeypatch):
  monkeypatch.setitem(launcher.ENGINES, 'scripted', Scripted)
  monkeypatch.setattr(supervisor, '_LOOK_SECONDS', 0.05)
  monkeypatch.setattr(node_state, '_BACKOFFS', (0.1, 0.2))

  def make_program():
    program = lp.Program('test')
    for title in _TITLES:
      label, _, _ = title.partition('/')
      with program.group(label):
        program.add_node(lp.PyNode(print))
    return program

  def launch(most=3, watchdog_seconds=600.0, grace_seconds=0.2, **script):
    by_title = {name.replace('_', '/'): parts for name, parts in script.items()}
    monkeypatch.setattr(Scripted, 'script', by_title)
    monkeypatch.setattr(Scripted, 'started', [])
    for name in ('killed', 'placed', 'released'):
      monkeypatch.setattr(Scripted, name, [])
    code = launcher.launch(
      make_program(),
      workdir=tmp_path,
      launch_type='scripted',
      checked_labels=['learner'],
      grace_seconds=grace_seconds,
      policy=restarts.RestartPolicy(
        most,
        labels={'server': ['actor'], 'actor': []},
        next_program=make_program,
        watchdog_seconds=watchdog_seconds,
      ),
    )
    # Without the first attempt of each node.
    return code, Scripted.started[len(_TITLES) :]

  return launch


def finish_after(count):
  """Makes the coordinator end the program after `count` starts of nodes."""

  def wait(engine, title):
    if len(engine.started) >= count:
      engine.end('coordinator/0', 0)

  return wait


def test_an_actor_restarts_while_the_others_keep_running(
  launch, tmp_path, capsys
):
  code, started = launch(
    actor_0=[after(work, end(_KILLED)), finish_after(len(_TITLES) + 1)]
  )
  assert code == 0 and started == ['actor/0 1']
  line = (
    'actor/0 was killed (SIGKILL); the machine may be out of memory. '
    'Restarting (restart 1 of 3 allowed per hour).\n'
  )
  assert capsys.readouterr().err.endswith(line)
  assert (tmp_path / 'processes' / 'launcher.log').read_text().endswith(line)
  # Heartbeats are not in the output.
  log = (tmp_path / 'processes' / 'actor-0.log').read_text()
  assert log.count('--- ') == 2 and '\nhello\n' in log


def test_each_node_has_its_own_restart_budget(launch, capsys):
  die = after(work, end(_KILLED))
  code, started = launch(most=2, actor_0=[die] * 2, actor_1=[die] * 3)
  assert code == 1
  assert sorted(started) == [
    *('actor/0 1', 'actor/0 2'),
    *('actor/1 1', 'actor/1 2'),
  ]
  assert 'error: actor/1 was killed (SIGKILL)' in capsys.readouterr().err


def test_without_restarts_the_first_failure_ends_the_program(launch, capsys):
  for title in ('actor_0', 'learner_0'):
    code, started = launch(most=0, **{title: [after(work, end(_KILLED))]})
    assert code == 1 and not started
    assert 'Restarting' not in capsys.readouterr().err


def test_an_error_leads_to_a_restart_once_the_node_has_worked(launch, capsys):
  code, started = launch(
    actor_0=[after(work, fail), fail, finish_after(len(_TITLES) + 2)]
  )
  assert code == 0 and started == ['actor/0 1', 'actor/0 2']
  line = 'actor/0 failed with exit code 1. OSError: no disk. Restarting ('
  assert line in capsys.readouterr().err
  # The first attempt of a node would only fail again.
  for title in ('actor_0', 'learner_0'):
    code, started = launch(**{title: [fail]})
    assert code == 1 and not started
    assert capsys.readouterr().err.endswith('Traceback ...\nOSError: no disk\n')


@pytest.mark.parametrize('title', ['actor_0', 'coordinator_0'])
def test_a_node_that_another_program_has_stopped_has_failed(
  launch, capsys, title
):
  stop = after(stops, end(0))
  finish = finish_after(len(_TITLES) + 1)
  if title == 'actor_0':
    code, started = launch(actor_0=[stop, finish])
    assert started == ['actor/0 1']
  else:
    code, started = launch(coordinator_0=[stop], actor_0=[work, finish])
    assert started == [f'{title} 0' for title in _TITLES]
  assert code == 0
  line = 'was stopped by another program (SIGTERM). '
  assert line in capsys.readouterr().err


def test_actors_restart_with_their_server(launch):
  code, started = launch(
    server_0=[work],
    actor_0=[work, finish_after(len(_TITLES) + 2)],
    actor_1=[after(end(0), end(_KILLED, 'server/0'))],
  )
  # An actor that had exited stays so, and the other one has not failed.
  assert code == 0 and started == ['server/0 1', 'actor/0 1']
  # At the end, nodes without a heartbeat are killed as well.
  assert Scripted.killed[0] == 'actor/0' and 'actor/1' not in Scripted.killed


def test_the_program_restarts_after_a_failure_of_the_learner(launch, capsys):
  code, started = launch(
    learner_0=[after(work, end(_KILLED))],
    coordinator_0=[work, after(work, end(0))],
  )
  assert code == 0
  assert started == [f'{title} 0' for title in _TITLES]
  errors = capsys.readouterr().err
  assert 'Restarting the program from its last checkpoint (restart 1' in errors
  assert 'error:' not in errors


@pytest.mark.parametrize('waits', [False, True])
def test_before_a_restart_only_the_learner_has_the_whole_timeout(
  launch, monkeypatch, waits
):
  monkeypatch.setattr(supervisor, '_FLUSH_SECONDS', 0.01)
  monkeypatch.setattr(Scripted, 'deaf', ('learner', 'actor'))
  script = {name: [work] for name in ('learner_0', 'actor_0', 'actor_1')}
  victim, grace_seconds = ('', 0.3) if waits else ('learner/0', 600.0)
  script['coordinator_0'] = [after(work, end(_KILLED, victim))]
  start = time.monotonic()
  code, started = launch(
    grace_seconds=grace_seconds,
    **{**script, 'server_0': [work, end(0, 'coordinator/0')]},
  )
  assert code == 0 and len(started) == len(_TITLES)
  assert (time.monotonic() - start > 0.3) == waits
  # The nodes of the next program are killed later.
  killed = ['learner/0'] * waits + ['actor/0', 'actor/1']
  assert Scripted.killed[: len(killed)] == killed


def test_the_program_has_a_restart_budget(launch, capsys):
  code, started = launch(most=2, learner_0=[end(_KILLED)] * 3)
  assert code == 1 and len(started) == 2 * len(_TITLES)
  errors = capsys.readouterr().err
  assert errors.count('Restarting the program from its last checkpoint') == 2
  assert errors.splitlines()[-1].startswith('error: learner/0 was killed')


@pytest.mark.parametrize('moment', ['at_failure', 'at_start', 'stopping'])
def test_ctrl_c_ends_a_program_that_restarts(launch, moment, monkeypatch):
  script = {
    'at_failure': {'learner_0': [after(end(_KILLED), interrupt)]},
    'at_start': {'learner_0': [end(_KILLED), interrupt]},
    'stopping': {'learner_0': [end(_KILLED)]},
  }[moment]
  if moment == 'stopping':
    tell = Scripted.signal

    def tell_and_interrupt(engine, title, signum):
      tell(engine, title, signum)
      if title == 'actor/1':
        interrupt(engine, title)

    monkeypatch.setattr(Scripted, 'signal', tell_and_interrupt)
  code, started = launch(**script)
  assert code == 130
  assert len(started) == (len(_TITLES) if moment == 'at_start' else 0)


@pytest.mark.parametrize('saves', [True, False])
def test_a_node_that_has_saved_loses_nothing_if_it_is_slow_to_exit(
  launch, monkeypatch, capsys, saves
):
  monkeypatch.setattr(Scripted, 'deaf', ('learner',))
  learner = after(work, save) if saves else work
  code, _ = launch(learner_0=[learner], actor_1=[after(work, interrupt)])
  assert code == 130 and 'learner/0' in Scripted.killed
  is_lost = 'Its unsaved state is lost' in capsys.readouterr().err
  assert is_lost != saves


def test_ctrl_c_does_not_wait_for_nodes_without_a_heartbeat(
  launch, monkeypatch
):
  monkeypatch.setattr(Scripted, 'deaf', ('actor', 'server'))
  start = time.monotonic()
  code, started = launch(
    grace_seconds=600,
    # Its second attempt sends no heartbeat.
    actor_0=[after(work, end(_KILLED))],
    coordinator_0=[interrupt],
  )
  assert code == 130 and started == ['actor/0 1']
  assert time.monotonic() - start < 300
  # The learner is not killed: the replay may already have been filled.
  assert sorted(Scripted.killed) == ['actor/0', 'actor/1', 'server/0']


@pytest.mark.parametrize('name, expected', [('learner_0', 1), ('server_0', 0)])
def test_a_failure_while_stopping_counts_in_checked_nodes(
  launch, monkeypatch, capsys, name, expected
):
  tell = Scripted.signal

  def tell_or_fail(engine, title, signum):
    failing = title == name.replace('_', '/') and signum == signal.SIGTERM
    fail(engine, title) if failing else tell(engine, title, signum)

  monkeypatch.setattr(Scripted, 'signal', tell_or_fail)
  code, _ = launch(
    most=0, **{name: [work]}, coordinator_0=[after(work, end(0))]
  )
  assert code == expected
  assert ('OSError: no disk' in capsys.readouterr().err) == bool(expected)


def test_ctrl_c_during_the_shutdown_lets_nodes_save(
  launch, monkeypatch, capsys
):
  monkeypatch.setattr(Scripted, 'deaf', ('learner',))
  tell = Scripted.signal

  def tell_and_interrupt(engine, title, signum):
    if title == 'learner/0' and signum == signal.SIGTERM:
      interrupt(engine, title)
    tell(engine, title, signum)

  monkeypatch.setattr(Scripted, 'signal', tell_and_interrupt)
  for last, expected in ((0, 130), (1, 1)):
    code, _ = launch(most=0, coordinator_0=[after(work, end(last))])
    assert code == expected
    # The learner had its whole timeout before it was killed.
    if not last:
      errors = capsys.readouterr().err
      assert 'learner/0 did not stop within 0.2 s' in errors
    assert 'learner/0' in Scripted.killed


def test_a_hung_node_is_killed_and_restarted(launch, capsys, monkeypatch):
  monkeypatch.setattr(heartbeats, 'PERIOD', 0.01)
  monkeypatch.setattr(supervisor, '_SECONDS_AFTER_SERVERS', 0.1)
  code, started = launch(
    watchdog_seconds=0.5,
    # The other actor has never sent a heartbeat, so it may be compiling.
    actor_0=[work, finish_after(len(_TITLES) + 1)],
  )
  assert code == 0 and started == ['actor/0 1']
  line = 'actor/0 sent no heartbeat for 0.5 s and was killed. Restarting'
  assert line in capsys.readouterr().err


def test_a_server_that_has_lost_its_address_restarts_the_program(
  launch, monkeypatch
):
  monkeypatch.setattr(
    executables,
    'make',
    lambda program, addresses: dict.fromkeys(addresses),
  )
  monkeypatch.setattr(Scripted, 'servers', ('server/0',))
  code, started = launch(
    server_0=[after(work, lose)], coordinator_0=[work, after(work, end(0))]
  )
  assert code == 0
  assert started == [f'{title} 0' for title in _TITLES]


def test_a_slot_that_is_lost_before_the_start_is_replaced(
  launch, monkeypatch, capsys
):
  monkeypatch.setattr(Scripted, 'unlucky', {'learner/0': 1, 'actor/1': 1})
  code, started = launch(coordinator_0=[after(work, end(0))])
  assert code == 0 and not started
  assert Scripted.placed.count('actor/1') == 2
  line = (
    'actor/1 could not be scheduled: its machine was lost. Rescheduling '
    '(restart 2 of 3 allowed per hour).'
  )
  assert line in capsys.readouterr().err
  code, _ = launch(most=1)
  assert code == 1


def test_a_failure_before_the_first_heartbeat_is_retried_elsewhere_later(
  launch, capsys
):
  code, started = launch(
    actor_0=[
      after(work, end(_KILLED)),
      fail,
      refuse,
      finish_after(len(_TITLES) + 3),
    ]
  )
  assert code == 0
  assert started == ['actor/0 1', 'actor/0 2', 'actor/0 3']
  # The first attempt had worked; the others may have had a bad machine.
  assert Scripted.placed.count('actor/0') == 3
  errors = capsys.readouterr().err
  assert 'Restarting (restart 1 of' in errors
  assert 'no disk. Restarting in 0.1 s (restart 2 of' in errors
  line = 'could not be started: no file. Restarting in 0.2 s (restart 3'
  assert line in errors


def test_a_slot_may_be_lost_while_its_node_waits(launch, monkeypatch, capsys):
  monkeypatch.setattr(Scripted, 'unlucky', {'actor/0': 2})
  monkeypatch.setattr(node_state, '_BACKOFFS', (1e-9,))  # Due with the loss.
  code, started = launch(
    actor_0=[
      after(work, end(_KILLED)),
      fail,
      finish_after(len(_TITLES) + 2),
    ]
  )
  assert code == 0 and started == ['actor/0 1', 'actor/0 2']
  assert Scripted.placed.count('actor/0') == 3
  assert 'its machine was lost. Restarting' in capsys.readouterr().err


def test_a_learner_that_has_worked_may_fail_at_the_start_of_the_next_program(
  launch,
):
  code, started = launch(
    learner_0=[after(work, end(_KILLED)), fail],
    coordinator_0=[work, work, after(work, end(0))],
  )
  assert code == 0 and len(started) == 2 * len(_TITLES)


def test_a_node_that_has_finished_frees_its_slot(launch):
  code, _ = launch(
    actor_0=[after(work, end(0))],
    actor_1=[work],
    coordinator_0=[lambda engine, title: engine.end(title, 0)],
  )
  assert code == 0
  # All are released when the program ends.
  assert Scripted.released.count('actor/0') == 2
  assert Scripted.released.count('actor/1') == 1


def test_a_node_without_a_heartbeat_is_reported_once(
  launch, capsys, monkeypatch
):
  def finish_later(engine, title):
    threading.Timer(1.0, engine.end, (title, 0)).start()

  code, _ = launch(
    watchdog_seconds=0.3,
    **{name.replace('/', '_'): [work] for name in _TITLES[:3]},
    coordinator_0=[after(finish_later)],
  )
  assert code == 0
  errors = capsys.readouterr().err
  assert errors.count('[actor/1] no heartbeat after 0.3 s') == 1
