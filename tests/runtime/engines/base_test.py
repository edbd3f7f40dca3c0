"""The supervisor's calls of an engine, recorded by an engine without processes.

The engine behaves like one on several machines: nodes are scheduled late or
never, and machines fail.
"""

import os
import signal

import pytest

pytest.importorskip('launchpad', reason='needs the full environment')

import launchpad as lp

from bt_acme.runtime import events, launcher
from bt_acme.runtime.engines import base


class Answer:
  def reply(self):
    return 1


class Recorder(base.Engine):
  """Records all calls, and calls functions of the test that post events."""

  made = None
  on_place = staticmethod(lambda engine, title, addresses: None)
  on_start = staticmethod(lambda engine, title: None)
  on_signal = staticmethod(lambda engine, title: None)

  def __init__(self, queue):
    super().__init__(queue)
    self.queue = queue
    self.calls = []
    self.commands = {}
    Recorder.made = self

  def place(self, title, num_ports):
    self.calls.append(('place', title, num_ports))
    addresses = [f'10.0.0.{len(self.calls)}:{i}' for i in range(num_ports)]
    self.on_place(self, title, addresses)

  def start(self, title, executable, environment):
    self.calls.append(('start', title))
    self.commands[title] = executable.command_as_list, environment
    self.on_start(self, title)
    return 'process 1 on 10.0.0.1'

  def signal(self, title, signum):
    self.calls.append((signal.Signals(signum).name, title))
    self.on_signal(self, title)

  def release(self, title):
    self.calls.append(('release', title))

  def close(self):
    self.calls.append(('close',))

  def titles(self, call):
    return [words[1] for words in self.calls if words[0] == call]


def place(engine, title, addresses):
  engine.queue.put(events.NodeScheduled(title, addresses))


def end(code, *reason):
  return lambda engine, title: engine.queue.put(
    events.NodeExited(title, code, *reason)
  )


@pytest.fixture(name='launch')
def make_launch(tmp_path, monkeypatch):
  monkeypatch.setitem(launcher.ENGINES, 'recorder', Recorder)

  def launch(**behavior):
    for name, function in {'on_place': place, **behavior}.items():
      monkeypatch.setattr(Recorder, name, staticmethod(function))
    program = lp.Program('test')
    server = program.add_node(lp.CourierNode(Answer), label='server')
    program.add_node(lp.PyNode(print, server), label='coordinator')
    code = launcher.launch(
      program,
      workdir=tmp_path,
      launch_type='recorder',
      environments={'server': {'GREETING': 'hello'}},
      ports={'server': 1234},
      checked_labels=['server'],
      grace_seconds=0.2,
    )
    Recorder.made.program = program
    return code, Recorder.made

  return launch


def test_nodes_are_scheduled_started_stopped_and_released(
  launch, tmp_path, capsys
):
  def start(engine, title):
    engine.queue.put(events.Output(title, 'stdout', b'hello\n'))
    if title == 'coordinator/0':
      end(0)(engine, title)

  code, engine = launch(on_start=start, on_signal=end(0))
  assert code == 0
  assert engine.calls == [
    ('place', 'server/0', 1),
    ('place', 'coordinator/0', 0),
    ('start', 'server/0'),
    ('start', 'coordinator/0'),
    ('SIGTERM', 'server/0'),
    ('release', 'server/0'),
    ('release', 'coordinator/0'),
    ('close',),
  ]
  assert engine.commands['server/0'][1]['GREETING'] == 'hello'
  assert 'GREETING' not in engine.commands['coordinator/0'][1]
  assert '[server/0] hello\n' in capsys.readouterr().err
  log = (tmp_path / 'processes' / 'server-0.log').read_text()
  assert ', process 1 on 10.0.0.1\nhello\n' in log


def test_nothing_starts_before_every_node_is_scheduled(launch, capsys):
  def place_late(engine, title, addresses):
    if title == 'server/0':
      engine.server_addresses = addresses
      engine.queue.put(events.NodePending(title, 'no machine has a GPU'))
      return
    place(engine, title, addresses)
    place(engine, 'server/0', engine.server_addresses)

  code, engine = launch(on_place=place_late, on_start=end(0), on_signal=end(0))
  assert code == 0
  assert engine.titles('start') == ['server/0', 'coordinator/0']
  errors = capsys.readouterr().err
  message = '[server/0] waiting to be scheduled: no machine has a GPU\n'
  assert message in errors
  # The server gets the user's port, on the machine that the engine selected.
  (server,) = engine.program.groups['server']
  assert server.courier_address.resolve() == '10.0.0.1:1234'


def test_a_node_that_cannot_be_scheduled_ends_the_program(launch, capsys):
  def refuse(engine, title, addresses):
    end(1, 'cannot be scheduled: no machine has 8 GPUs.')(engine, title)

  code, engine = launch(on_place=refuse)
  assert code == 1 and not engine.titles('start')
  assert engine.titles('release') == ['server/0', 'coordinator/0']
  message = 'error: server/0 cannot be scheduled: no machine has 8 GPUs.\n'
  assert capsys.readouterr().err == message


def test_ctrl_c_ends_the_wait_for_a_slot(launch):
  def wait(engine, title, addresses):
    if title == 'coordinator/0':
      os.kill(os.getpid(), signal.SIGINT)

  code, engine = launch(on_place=wait)
  assert code == 130 and not engine.titles('start')
  assert engine.calls[-1] == ('close',)


def test_a_lost_machine_is_reported(launch, capsys):
  def start(engine, title):
    if title == 'server/0':
      end(1, 'was lost with 10.0.0.1.')(engine, title)

  code, engine = launch(on_start=start)
  assert code == 1
  # The coordinator ignores the request to stop, and is not checked.
  assert engine.titles('SIGTERM') == ['coordinator/0']
  assert engine.titles('SIGKILL') == ['coordinator/0']
  message = 'error: server/0 was lost with 10.0.0.1. Full output: '
  assert message in capsys.readouterr().err


def test_an_error_while_starting_leaves_nothing_behind(launch, capsys):
  def fail(engine, title):
    if title == 'coordinator/0':
      raise OSError('no more processes')

  code, engine = launch(on_start=fail)
  assert code == 1
  message = 'error: coordinator/0 could not be started: no more processes.\n'
  assert capsys.readouterr().err == message
  assert engine.titles('SIGTERM') == ['server/0']
  assert engine.titles('release') == ['server/0', 'coordinator/0']
