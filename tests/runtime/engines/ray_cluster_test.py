"""Nodes on a Ray cluster of two machines, simulated on this computer."""

import contextlib
import functools
import json
import pathlib
import signal
import socket
import subprocess
import sys
import types
from unittest import mock

import psutil
import pytest

from bt_acme.config import placement
from bt_acme.runtime import events, heartbeats
from bt_acme.runtime.engines import ray_cluster
from tests.launch import machines as machines_lib
from tests.launch import scripts

PYTHON = machines_lib.RAY / 'python'

if not PYTHON.exists():
  pytest.skip('needs the environment of `make ray`', allow_module_level=True)

# The code of a node that describes itself, and then waits.
SPEAK = """
import json, os, sys, time
print(json.dumps({
  'data': open(sys.argv[2]).read(),
  'greeting': os.environ.get('GREETING'),
  'of_ray': [n for n in os.environ if n.startswith(('RAY_', 'OMP_'))],
  'pid': os.getpid(),
}), flush=True)
print('an error.ts\\4\\5\\6', file=sys.stderr, flush=True)
os.write(int(os.environ['BT_ACME_HEARTBEATS']), b'.s')
time.sleep(600)
"""


@pytest.fixture(name='machines', scope='module')
def start_machines():
  """Returns a cluster of two machines; its `crash` ends the second one."""
  script = pathlib.Path(__file__).with_name('ray_machines.py')
  with mock.patch.dict('os.environ', machines_lib.VARIABLES):
    process = subprocess.Popen(
      [PYTHON, script],
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      stderr=subprocess.DEVNULL,
      text=True,
    )

    def answer_to(command):
      process.stdin.write(command)
      process.stdin.flush()
      # Ray may print lines of its own before the answer.
      return next(json.loads(x) for x in process.stdout if x.startswith('{'))

    address = answer_to('')['address']
    crash = functools.partial(answer_to, 'crash\n')
    yield types.SimpleNamespace(address=address, crash=crash)
    process.stdin.close()
    process.wait(60)
    process.stdout.close()


class Driven(contextlib.ExitStack):
  """An engine under test, with all events that it has posted."""

  def __init__(self, address, places=''):
    super().__init__()
    self._queue = events.EventQueue()
    self.engine = ray_cluster.RayCluster(
      self._queue,
      address=address,
      python=str(PYTHON),
      places=placement.parse(places),
    )
    self.posted = []
    self.callback(self.engine.close)

  def wait_for(self, kind, title, seconds=60):
    """Returns the next event of this kind from a node."""
    while True:
      event = self._queue.get(timeout=seconds)
      self.posted.append(event)
      if isinstance(event, kind) and event.title == title:
        return event

  def output(self, title, stream='stdout'):
    return b''.join(
      event.data
      for event in self.posted
      if isinstance(event, events.Output)
      and (event.title, event.stream) == (title, stream)
    )

  def wait_for_line(self, title):
    """Waits for a complete line of a node's output, and parses it as JSON."""
    while b'\n' not in self.output(title):
      self.wait_for(events.Output, title)
    return json.loads(self.output(title))


@pytest.fixture(name='command')
def make_command(tmp_path):
  path = tmp_path / 'job.pkl'
  path.write_text('a function')

  def command(code=SPEAK):
    words = [sys.executable, '-c', code, '--data_file', str(path)]
    return types.SimpleNamespace(command_as_list=words)

  return command


def test_a_node_prints_exits_and_restarts(machines, command):
  with Driven(machines.address) as run:
    run.engine.place('replay/0', 2)
    placed = run.wait_for(events.NodeScheduled, 'replay/0')
    hosts, ports = zip(*(a.split(':') for a in placed.addresses), strict=True)
    assert len(set(hosts)) == 1 and len(set(ports)) == 2
    name = run.engine.start('replay/0', command(), {'GREETING': 'hello'})
    assert name == f'a process on {hosts[0]}'
    said = run.wait_for_line('replay/0')
    assert said['data'] == 'a function'  # Sent to the machine with the command.
    assert said['greeting'] == 'hello'
    assert not said['of_ray']
    while not run.output('replay/0', 'heartbeats'):
      run.wait_for(events.Output, 'replay/0')
    marks = heartbeats.MARK + heartbeats.SAVED_MARK
    assert run.output('replay/0', 'heartbeats') == marks
    run.engine.signal('replay/0', signal.SIGTERM)
    assert run.wait_for(events.NodeExited, 'replay/0').code == -signal.SIGTERM
    assert b'an error.ts\4\5\6\n' in run.output('replay/0', 'stderr')
    assert run.output('replay/0', 'heartbeats') == marks
    run.engine.start('replay/0', command('raise SystemExit(3)'), {})
    assert run.wait_for(events.NodeExited, 'replay/0').code == 3
    # A missing program is a failure of the node, not of the cluster.
    missing = command()
    missing.command_as_list[0] = '/no/such/python'
    run.engine.start('replay/0', missing, {})
    assert run.wait_for(events.NodeExited, 'replay/0').code != 0


def test_a_node_restarts_without_its_file(machines, command, tmp_path):
  with Driven(machines.address) as run:
    run.engine.place('actor/0', 0)
    run.engine.start('actor/0', command(), {})
    # A signal that precedes the process applies to this attempt.
    run.engine.signal('actor/0', signal.SIGKILL)
    assert run.wait_for(events.NodeExited, 'actor/0').code == -signal.SIGKILL
    run.posted.clear()  # The killed process may have printed its line.
    again = command()
    (tmp_path / 'job.pkl').unlink()
    run.engine.start('actor/0', again, {})
    run.wait_for_line('actor/0')
    # Another node can use the released slot.
    run.engine.release('actor/0')
    run.engine.place('actor/1', 0)
    run.wait_for(events.NodeScheduled, 'actor/1')


def test_a_lost_node_is_placed_again_and_ends_with_the_engine(
  machines, command
):
  with Driven(machines.address) as run:
    run.engine.place('actor/0', 0)
    run.engine.start('actor/0', command(), {})
    lost = psutil.Process(run.wait_for_line('actor/0')['pid'])
    lost.parent().kill()  # The Ray actor.
    assert run.wait_for(events.NodeExited, 'actor/0').lost
    run.posted.clear()
    run.engine.place('actor/0', 0)
    run.engine.start('actor/0', command(), {})
    process = psutil.Process(run.wait_for_line('actor/0')['pid'])
    assert process.pid != lost.pid
  psutil.wait_procs([process], timeout=10)
  assert not process.is_running()


@pytest.mark.parametrize(
  'place, wanted',
  [
    ('num_gpus=4', "{'num_cpus': 1.0, 'num_gpus': 4.0}"),
    ('role=third', "'label_selector': {'role': 'third'}"),
  ],
)
def test_a_node_that_fits_no_machine_reports_the_reason(
  machines, place, wanted
):
  with Driven(machines.address, f'actor:{place};evaluator:role=second') as run:
    for title in ('actor/0', 'evaluator/0'):
      run.engine.place(title, 1)
    reason = run.wait_for(events.NodePending, 'actor/0').reason
    assert wanted in reason and "'CPU': " in reason
  placed = [e for e in run.posted if isinstance(e, events.NodeScheduled)]
  assert [event.title for event in placed] == ['evaluator/0']


def test_a_missing_cluster_ends_the_nodes(machines):
  with Driven('127.0.0.1:9') as run:
    run.engine.place('actor/0', 0)
    ended = run.wait_for(events.NodeExited, 'actor/0')
    assert ended.reason.startswith('lost the connection to Ray: no answer from')


def test_a_server_that_is_not_a_cluster_is_reported(monkeypatch):
  monkeypatch.setenv('RAY_AUTH_TOKEN', 'of-no-cluster')
  monkeypatch.setattr(ray_cluster, '_ANSWER_SECONDS', 5.0)
  with socket.create_server(('127.0.0.1', 0)) as server:
    address = f'127.0.0.1:{server.getsockname()[1]}'
    with pytest.raises(OSError, match=f'no answer from .* at {address} within'):
      ray_cluster.check(address, str(PYTHON))


def actors_at_work(workdir, num_before=0):
  """Returns the actors with an episode after the first `num_before` episodes.

  Each actor has four environments.
  """
  rows = scripts.rows(workdir, 'actor')[num_before:]
  return {int(row['environment']) // 4 for row in rows}


# This test is the last, because it ends the second machine.
@pytest.mark.slow
def test_a_run_survives_the_loss_of_a_machine(machines, tmp_path):
  workdir = tmp_path / 'run'
  with scripts.Script(
    'run_ngu',
    workdir,
    *scripts.NGU,
    *machines_lib.flags(machines.address),
    '--num_actors=2',
    '--num_evaluators=0',
    '--max_actor_steps=1000000',
    environment=machines_lib.VARIABLES,
  ) as script:

    def wait_until(condition):
      scripts.wait_until(condition, script.process, seconds=280)

    wait_until(lambda: actors_at_work(workdir) == {0, 1})
    wait_until(lambda: scripts.rows(workdir, 'learner'))
    machines.crash()
    # Ray spreads the actors, so one of them was on that machine.
    wait_until(lambda: sum(scripts.num_attempts(workdir, 'actor-*')) >= 3)
    notes = (workdir / 'processes' / 'launcher.log').read_text()
    assert 'was lost with its machine or its Ray actor' in notes
    episodes = len(scripts.rows(workdir, 'actor'))
    wait_until(lambda: actors_at_work(workdir, episodes) == {0, 1})
    learner_steps = len(scripts.rows(workdir, 'learner'))
    wait_until(lambda: len(scripts.rows(workdir, 'learner')) > learner_steps)
    script.process.send_signal(signal.SIGINT)
    code, output, errors = script.end()
  assert code == 130, errors
  assert 'Warning: the nodes listen on ports' in output
  assert list((workdir / 'checkpoints').glob('checkpoint-*'))
