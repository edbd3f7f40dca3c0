"""Nodes as processes: none of them is left behind, in any way of ending."""

import collections
import os
import queue as queue_lib
import resource
import signal
import socket
import sys
import time
import types

import pytest

from bt_acme.runtime import events, heartbeats
from bt_acme.runtime.engines import node_process, private_network, processes
from tests.launch import scripts
from tests.runtime import programs


def test_program_ends_well_with_its_main_node(tmp_path):
  nodes = ['replay', 'idle', 'finish', 'end']
  with programs.Run(tmp_path, 'local_mp', *nodes) as run:
    code, output, errors = run.end()
  assert code == 0, errors
  # Status lines are on standard output; all other lines have a prefix.
  assert 'actor steps 7 / 100 (7%) | replay 1' in output
  assert all(line.startswith('actor steps') for line in output.splitlines())
  assert f'] counter at localhost:{run.port}' in errors
  assert '[worker/0] says idle\n' in errors
  assert '[worker/1] says finish\n' in errors
  assert 'Traceback' not in errors and 'did not stop' not in errors
  assert 'Reverb client connecting' not in errors
  # The node that would never end was asked to stop, and cleaned up.
  log = (tmp_path / 'processes' / 'worker-0.log').read_text()
  assert log.startswith('--- ') and 'says idle\nsays idle-stopped\n' in log
  assert 'Waiting for workers' not in log
  log = (tmp_path / 'processes' / 'coordinator-0.log').read_text()
  assert 'actor steps 7 / 100' in log and 'Reverb client connecting' in log
  assert (tmp_path / 'processes' / 'replay-0.log').exists()


def test_processes_have_their_own_network_and_end_with_their_launcher(tmp_path):
  with programs.Run(tmp_path, 'local_mp', 'idle', 'stubborn') as run:
    # The coordinator has called the counter, at a port that the test chose.
    run.wait_for('idle', 'stubborn', 'coordinator')
    nodes = [p for p in run.survivors() if p.pid != run.process.pid]
    networks = {os.readlink(f'/proc/{p.pid}/ns/net') for p in nodes}
    assert len(nodes) == 4 and len(networks) == 1
    assert os.readlink('/proc/self/ns/net') not in networks
    with pytest.raises(ConnectionRefusedError):
      socket.create_connection(('localhost', run.port), 5)
    # The environment given to the label `worker` reaches its two nodes only.
    greetings = [process.environ().get('GREETING') for process in nodes]
    assert greetings.count('hello') == 2 and greetings.count(None) == 2
    run.process.kill()
    run.process.wait()
    scripts.wait_until(lambda: not run.survivors(), seconds=5)


def command_of(*words):
  return types.SimpleNamespace(command_as_list=[sys.executable, *words])


def run_node(*codes, open_ports=True, **environment):
  """Runs Python code in each attempt of a node; returns all posted events."""
  queue, posted = events.EventQueue(), []
  engine = processes.Processes(queue, open_ports=open_ports)
  for code in codes:
    engine.start('worker/0', command_of('-c', code), environment)
    posted.append(queue.get(timeout=30))
    while not isinstance(posted[-1], events.NodeExited):
      posted.append(queue.get(timeout=30))
  engine.release('worker/0')
  engine.close()
  return posted


# tests/runtime/supervisor_test.py has restarts of nodes that were killed.
def test_a_killed_node_can_be_started_again():
  posted = run_node('import os; os.kill(os.getpid(), 9)', '')
  assert posted == [events.NodeExited('worker/0', code) for code in (-9, 0)]


def test_a_system_without_namespaces_works_after_a_warning(monkeypatch, capsys):
  monkeypatch.setattr(private_network, '_MAKE', 'raise SystemExit(1)')
  code = 'import os; os.write(1, os.environ["GREETING"].encode())'
  posted = run_node(code, open_ports=False, GREETING='hello')
  output = capsys.readouterr().out
  assert 'Warning: this system forbids network namespaces' in output
  assert posted == [
    events.Output('worker/0', 'stdout', b'hello'),
    events.NodeExited('worker/0', 0),
  ]


@pytest.mark.parametrize('open_ports', [False, True])
def test_the_output_of_a_node_is_never_a_heartbeat(open_ports):
  """Not even if it contains the marks of today or of earlier versions."""
  marks = [heartbeats.MARK, heartbeats.STOP_MARK, heartbeats.SAVED_MARK]
  printed = b''.join(marks) + b'\x04\x05\x06'
  code = f"""
import os
from bt_acme.runtime import heartbeats
os.write(1, {printed!r})
os.write(2, {printed!r})
heartbeats.make_heartbeat()()
heartbeats.report_stopping()
heartbeats.report_saved()
os.write(1, b'!')
"""
  *posted, end = run_node(code, open_ports=open_ports)
  assert end == events.NodeExited('worker/0', 0)
  streams = collections.defaultdict(bytes)
  for event in posted:
    streams[event.stream] += event.data
  assert streams == {
    'stdout': printed + b'!',
    'stderr': printed,
    'heartbeats': b''.join(marks),
  }


def test_a_node_that_could_not_be_started_takes_signals_and_is_released():
  _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
  resource.setrlimit(resource.RLIMIT_NOFILE, (1024, most))
  engine = processes.Processes(events.EventQueue(), open_ports=True)
  assert resource.getrlimit(resource.RLIMIT_NOFILE) == (most, most)
  with pytest.raises(OSError, match='Argument list too long'):
    engine.start('worker/0', command_of(), {'LONG': 'x' * 1_000_000})
  for signum in (signal.SIGTERM, signal.SIGKILL):
    engine.signal('worker/0', signum)
  engine.release('worker/0')
  engine.close()


def test_a_process_that_cannot_be_killed_is_left_behind(monkeypatch):
  monkeypatch.setattr(processes, '_EXIT_SECONDS', 0.1)
  monkeypatch.setattr(node_process, 'send', lambda *args: None)
  queue = events.EventQueue()
  engine = processes.Processes(queue, open_ports=True)
  engine.start('worker/0', command_of('-c', 'import time; time.sleep(60)'), {})
  process, thread = engine._processes['worker/0']
  engine.release('worker/0')
  process.kill()  # It ends after all.
  thread.join()
  with pytest.raises(queue_lib.Empty):
    queue.get(timeout=0.0)


@pytest.mark.parametrize('start_new_session', [False, True])
def test_a_child_that_holds_the_pipes_does_not_delay_the_exit(
  start_new_session,
):
  child = 'import time; print("child", flush=True); time.sleep(30)'
  code = f"""
import subprocess, sys, time
subprocess.Popen([sys.executable, '-c', {child!r}],
  start_new_session={start_new_session})
time.sleep(2)
"""
  start = time.monotonic()
  *posted, end = run_node(code)
  assert end == events.NodeExited('worker/0', 0)
  assert b''.join(event.data for event in posted) == b'child\n'
  assert time.monotonic() - start < 20


def test_all_that_a_process_wrote_before_its_exit_is_read(monkeypatch):
  monkeypatch.setattr(node_process, '_READ_SIZE', 1_000)
  command = ['head', '-c', '50000', '/dev/zero']
  process, pipes = node_process.start(command, dict(os.environ))
  process.wait()
  posted = [data for _, data in node_process.follow(process, pipes)]
  assert len(b''.join(posted)) == 50_000


def test_a_child_process_that_keeps_writing_does_not_prevent_the_end(
  monkeypatch,
):
  monkeypatch.setattr(node_process, '_DRAIN_SECONDS', 1.0)
  # Child processes in sessions of their own write without a pause.
  script = 'for i in 1 2 3; do setsid yes & done; sleep 0.2'
  process, pipes = node_process.start(['sh', '-c', script], dict(os.environ))
  start = time.monotonic()
  for name, data in node_process.follow(process, pipes):
    assert (name, data[:2]) in (('stdout', b'y\n'), ('stdout', b'\ny'))
    assert time.monotonic() - start < 30.0
    time.sleep(0.01)  # The child process fills the pipe meanwhile.
  assert process.returncode == 0
