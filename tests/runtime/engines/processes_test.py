"""Real Launchpad programs, run to every kind of end.

Each program runs as a script in a process of its own, whose environment carries
a mark that all its descendants inherit: none of them may outlive it.
"""

import ctypes
import os
import pathlib
import platform
import signal
import socket
import subprocess
import sys
import time
import uuid

import launchpad as lp
import psutil
import pytest

from bt_acme.runtime import metrics as metrics_lib
from bt_acme.runtime.engines import processes as launching

_MARK = 'BT_ACME_TEST_MARK'
_TGKILL = {'x86_64': 234, 'aarch64': 131}[platform.machine()]  # System call.
_ROOT = str(pathlib.Path(__file__).parents[3])
_ENVIRONMENT = {**os.environ, 'PYTHONPATH': _ROOT}
_BOTH = pytest.mark.parametrize('launch_type', ['local_mp', 'local_mt'])

# Its arguments name the nodes that go beside a coordinator and a counter.
_SCRIPT = """
import os, signal, sys, time
import bt_acme
import launchpad as lp
from bt_acme.runtime import metrics as loggers
from bt_acme.runtime.engines import processes as launching

launch_type, workdir, label, grace, checked, port = sys.argv[1:7]

def table():
  import reverb
  return [reverb.Table('replay', reverb.selectors.Fifo(),
    reverb.selectors.Fifo(), 10, reverb.rate_limiters.MinSize(1))]

class Counter:
  def count(self):
    return 7

def say(name):
  print('says', name, flush=True)
  open(os.path.join(workdir, name), 'w').close()

def coordinate(counter, replay, seconds):
  progress = loggers.Progress(100)
  values = {'actor_steps': counter.count()}
  if replay:
    replay.insert([1.0], {'replay': 1.0})
    values['replay_size'] = replay.server_info()['replay'].current_size
  progress.update(values)
  say('coordinator')
  print('counter at', counter.address, flush=True)
  lp.wait_for_stop(seconds)
  progress.close()

def idle():
  say('idle')
  while not lp.wait_for_stop(0):
    time.sleep(0.05)
  say('idle-stopped')

def finish():
  say('finish')

def fail():
  time.sleep(0.5)
  raise RuntimeError('a marked failure')

def fail_late():
  say('fail_late')
  lp.wait_for_stop()
  raise RuntimeError('a marked failure')

def die():
  os.kill(os.getpid(), signal.SIGKILL)

def stubborn():
  if launch_type == 'local_mp':
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
  say('stubborn')
  time.sleep(600)

if __name__ == '__main__':
  program = lp.Program('test')
  replay = None
  counter = program.add_node(lp.CourierNode(Counter), label='counter')
  seconds = 600.0
  for name in sys.argv[7:]:
    if name == 'end':
      seconds = 0.5
    elif name == 'replay':
      replay = program.add_node(lp.ReverbNode(table), label='replay')
    else:
      program.add_node(lp.PyNode(globals()[name]), label=label)
  program.add_node(
    lp.PyNode(coordinate, counter, replay, seconds), label='coordinator')
  code = launching.launch(program, workdir=workdir, launch_type=launch_type,
    environments={label: {'GREETING': 'hello'}},
    ports={'counter': int(port)},
    checked_labels=[label] if checked == 'checked' else [],
    grace_seconds=float(grace))
  sys.exit(code)
"""


def _free_port():
  with socket.socket() as probe:
    probe.bind(('', 0))
    return probe.getsockname()[1]


class _Run:
  """A program under way."""

  def __init__(self, tmp_path, launch_type, nodes, grace='10', checked=''):
    self.workdir = tmp_path
    script = tmp_path / 'script.py'
    script.write_text(_SCRIPT)
    self.mark = uuid.uuid4().hex
    self.port = _free_port()
    command = [sys.executable, script, launch_type, tmp_path, 'worker']
    self.process = subprocess.Popen(
      [*command, grace, checked, str(self.port), *nodes],
      env={**_ENVIRONMENT, _MARK: self.mark},
      stdout=subprocess.PIPE,
      stderr=subprocess.PIPE,
      text=True,
    )

  def __enter__(self):
    return self

  def __exit__(self, *exc_info):
    self.process.kill()
    self.process.communicate()
    for process in self.survivors():
      process.kill()

  def wait_for(self, *names):
    """Waits until these nodes have begun."""
    deadline = time.monotonic() + 60
    while not all((self.workdir / name).exists() for name in names):
      assert self.process.poll() is None, self.process.communicate()
      assert time.monotonic() < deadline, f'{names} did not begin.'
      time.sleep(0.05)

  def end(self, seconds=60):
    """Waits for the end; code, standard output, standard error."""
    output, errors = self.process.communicate(timeout=seconds)
    return self.process.returncode, output, errors

  def survivors(self):
    """All processes that descend from this run and still run."""
    found = []
    for process in psutil.process_iter():
      try:
        if process.environ().get(_MARK) == self.mark:
          found.append(process)
      except (psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
        continue
    return found


@_BOTH
def test_program_ends_well_with_its_main_node(tmp_path, launch_type):
  nodes = ['replay', 'idle', 'finish', 'end']
  with _Run(tmp_path, launch_type, nodes) as run:
    code, output, errors = run.end()
    assert code == 0, errors
    assert 'actor steps 7 / 100 (7%) | replay 1' in output
    assert f'counter at localhost:{run.port}' in output + errors
    # The node that would never end had its notice, and cleaned up.
    assert (tmp_path / 'idle-stopped').exists()
    assert 'Traceback' not in errors
    assert not run.survivors()
  if launch_type == 'local_mt':
    assert 'Waiting for workers' not in output  # Launchpad's countdown.
    return
  # The status line comes bare, on standard output; all else with its origin.
  assert all(line.startswith('actor steps') for line in output.splitlines())
  assert '[worker/0] says idle\n' in errors
  assert '[worker/1] says finish\n' in errors
  assert 'Reverb client connecting' not in errors
  log = (tmp_path / 'processes' / 'worker-0.log').read_text()
  assert log.startswith('--- ') and 'says idle\nsays idle-stopped\n' in log
  assert 'Waiting for workers' not in log
  log = (tmp_path / 'processes' / 'coordinator-0.log').read_text()
  assert 'actor steps 7 / 100' in log and 'Reverb client connecting' in log
  assert (tmp_path / 'processes' / 'replay-0.log').exists()


@_BOTH
def test_failing_node_ends_program_with_its_traceback(tmp_path, launch_type):
  with _Run(tmp_path, launch_type, ['idle', 'fail']) as run:
    code, _, errors = run.end()
    assert code == 1
    assert errors.rstrip().endswith('RuntimeError: a marked failure')
    title = 'worker/1' if launch_type == 'local_mp' else 'worker'
    report = errors[errors.index(f'error: {title} failed') :]
    assert 'Traceback' in report and 'in fail' in report
    assert not run.survivors()


def test_node_killed_by_the_system_ends_program(tmp_path):
  with _Run(tmp_path, 'local_mp', ['die']) as run:
    code, _, errors = run.end()
    assert code == 1
    assert 'error: worker/0 was killed (SIGKILL): is the machine out' in errors
    assert not run.survivors()


@pytest.mark.parametrize(
  'launch_type, checked, expected',
  [('local_mp', 'checked', 1), ('local_mt', 'checked', 1), ('local_mt', '', 0)],
)
def test_failure_while_stopping_counts_in_checked_nodes(
  tmp_path, launch_type, checked, expected
):
  nodes = ['fail_late', 'end']
  with _Run(tmp_path, launch_type, nodes, checked=checked) as run:
    code, _, errors = run.end()
    assert code == expected, errors
    assert ('RuntimeError: a marked failure' in errors) == bool(expected)


@pytest.mark.parametrize(
  'launch_type, signum',
  [
    ('local_mp', signal.SIGINT),
    ('local_mp', signal.SIGTERM),
    ('local_mt', signal.SIGINT),
  ],
)
def test_interrupt_stops_cleanly(tmp_path, launch_type, signum):
  with _Run(tmp_path, launch_type, ['idle']) as run:
    run.wait_for('idle', 'coordinator')
    start = time.monotonic()
    run.process.send_signal(signum)
    code, _, errors = run.end(15)
    assert code == 128 + signum, errors
    assert (tmp_path / 'idle-stopped').exists()
    # Far below the grace: nothing had to be killed.
    assert time.monotonic() - start < 8
    assert 'Traceback' not in errors
    assert not run.survivors()


@_BOTH
def test_a_signal_that_another_thread_takes_is_seen(tmp_path, launch_type):
  # As the system may hand any signal out. The notice of a process's end is one
  # too: whoever misses it waits for ever.
  with _Run(tmp_path, launch_type, ['idle']) as run:
    run.wait_for('idle', 'coordinator')
    time.sleep(1)  # Until nothing is printed any more.
    pid = run.process.pid
    threads = [t.id for t in psutil.Process(pid).threads() if t.id != pid]
    ctypes.CDLL(None).syscall(_TGKILL, pid, threads[0], int(signal.SIGINT))
    code, _, errors = run.end(15)
    assert code == 130, errors
    assert (tmp_path / 'idle-stopped').exists()


@_BOTH
def test_node_that_does_not_stop_is_killed(tmp_path, launch_type):
  with _Run(
    tmp_path, launch_type, ['stubborn'], grace='1', checked='checked'
  ) as run:
    run.wait_for('stubborn', 'coordinator')
    run.process.send_signal(signal.SIGINT)
    code, _, errors = run.end(15)
    assert code == 130
    assert 'did not stop' in errors
    assert not run.survivors()


@_BOTH
def test_second_interrupt_kills_at_once(tmp_path, launch_type):
  with _Run(tmp_path, launch_type, ['stubborn'], grace='600') as run:
    run.wait_for('stubborn', 'coordinator')
    run.process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert run.process.poll() is None
    run.process.send_signal(signal.SIGINT)
    code, _, _ = run.end(15)
    assert code == 130
    assert not run.survivors()


def test_no_process_outlives_a_killed_launcher(tmp_path):
  with _Run(tmp_path, 'local_mp', ['idle', 'stubborn']) as run:
    run.wait_for('idle', 'stubborn', 'coordinator')
    processes = run.survivors()
    assert len(processes) == 5
    # The environment given to the label `worker` reaches its two nodes only.
    greetings = [process.environ().get('GREETING') for process in processes]
    assert greetings.count('hello') == 2 and greetings.count(None) == 3
    run.process.kill()
    run.process.wait()
    deadline = time.monotonic() + 5
    while run.survivors() and time.monotonic() < deadline:
      time.sleep(0.05)
    assert not run.survivors()


def test_a_taken_port_is_an_error_before_anything_starts(tmp_path):
  program = lp.Program('test')
  program.add_node(lp.PyNode(lambda: None), label='coordinator')
  with socket.socket() as server:
    server.bind(('', 0))
    server.listen()
    port = server.getsockname()[1]
    with pytest.raises(ValueError, match=f'coordinator_port={port} cannot be'):
      launching.launch(
        program, workdir=tmp_path / 'run', ports={'coordinator': port}
      )
  assert not (tmp_path / 'run').exists()
  launching.check_port_free(port)


@pytest.mark.parametrize('port', [0, 65536])
def test_port_out_of_range(port):
  with pytest.raises(ValueError, match=f'replay_port={port} must lie in'):
    launching.check_port_free(port, setting='replay_port')


@pytest.mark.parametrize(
  'settings, message',
  [
    ({'launch_type': 'cloud'}, "lp_launch_type='cloud' is unknown"),
    ({'main_label': 'boss'}, "no node labelled 'boss'"),
    ({'checked_labels': ['learner']}, "no node labelled 'learner'"),
    ({'environments': {'actor': {}}}, "no node labelled 'actor'"),
    ({'ports': {'replay': 1}}, "no node labelled 'replay'"),
  ],
)
def test_unknown_names_are_refused(tmp_path, settings, message):
  program = lp.Program('test')
  program.add_node(lp.PyNode(lambda: None), label='coordinator')
  with pytest.raises(ValueError, match=message):
    launching.launch(program, workdir=tmp_path, **settings)


def test_live_status_line_stays_below_the_log(capsys, monkeypatch):
  monkeypatch.setattr(sys.stdout, 'isatty', lambda: True)
  terminal = launching._Terminal()
  terminal.status('at work')
  terminal.log('[actor/0] hello')
  terminal.end_status()
  output, errors = capsys.readouterr()
  assert errors == '[actor/0] hello\n'
  status = metrics_lib.render_live('at work')
  assert output == status + metrics_lib.render_live('') + status + '\n'
