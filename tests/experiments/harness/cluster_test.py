"""Workers on two machines: what happens to them, and a real Ray cluster."""

import pathlib
import re
import signal
import subprocess
import sys
import threading

import psutil
import pytest

pytest.importorskip('portpicker', reason='needs the full environment')

from bt_acme.runtime import events
from experiments.harness import cluster
from tests.runtime.engines import two_machines

PYTHON = str(two_machines.PYTHON)
ROOT = pathlib.Path(__file__).parents[3]

# A worker says that it is there, waits for the other one, and ends with the
# code that is left for it.
MEET = """
import os, pathlib, sys, time
folder = pathlib.Path(sys.argv[1])
(folder / f'here-{os.getpid()}').touch()
while len(list(folder.glob('here-*'))) < 2:
  time.sleep(0.01)
try:
  (folder / 'first').mkdir()
  print('the first', flush=True)
except FileExistsError:
  print('the second\\nhas failed', flush=True)
  sys.exit(5)
"""
# Two workers of `experiments.harness.cluster` in a process of their own.
STOPPED = """
import sys
from experiments.harness import cluster
code = 'import os, time; print("pid", os.getpid(), flush=True); time.sleep(600)'
sys.exit(cluster.work(
  [sys.executable, '-c', code],
  cluster.find_machines(*sys.argv[1:]),
  address=sys.argv[1],
  python=sys.argv[2],
  say=lambda line: print(line, flush=True),
))
"""

HOSTS = {'worker-0/0': 'a', 'worker-1/0': 'b'}
CTRL_C, OVER = 'Ctrl-C', 'the hours are over'


class Engine:
  """An engine that does nothing by itself."""

  def __init__(self):
    self.started = []
    self.signals = []

  def place(self, title, num_ports):
    pass

  def start(self, title, executable, environment):
    self.started.append(title)
    assert executable.command_as_list == ['work']

  def signal(self, title, signum):
    self.signals.append((title, signum))


class Queue:
  """What happens to workers, in its order: events, `CTRL_C` and `OVER`."""

  def __init__(self, happens):
    self._happens = list(happens)
    self.workers = None

  def get(self, timeout):
    event = self._happens.pop(0)
    if event == CTRL_C:
      self.workers.stop(signal.SIGINT)
    elif event == OVER:
      self.workers._deadline = 0.0
    return None if event in (CTRL_C, OVER) else event

  def post(self, event):
    assert event is None


def run(*happens):
  """Runs two workers; returns their code, the engine, what was said."""
  engine, queue, lines = Engine(), Queue(happens), []
  queue.workers = cluster.Workers(
    queue, HOSTS, ['work'], hours=float('inf'), say=lines.append
  )
  return queue.workers.run(engine), engine, lines


def placed(name):
  return events.NodeScheduled(f'worker-{name}/0', [])


def ended(name, code, reason=''):
  return events.NodeExited(f'worker-{name}/0', code, reason)


def output(name, text, is_error=False):
  return events.Output(f'worker-{name}/0', text.encode(), is_error)


BOTH = (placed(0), placed(1))


@pytest.mark.parametrize(
  ('happens', 'code'),
  [
    ([*BOTH, ended(0, 0), ended(1, 0)], 0),
    ([*BOTH, ended(0, 3), ended(1, 3)], 1),
    # The other one has done all that this one has left.
    ([*BOTH, ended(0, -9), ended(1, 0)], 0),
    ([*BOTH, ended(0, -9), ended(1, 3)], 1),
    ([*BOTH, ended(0, -9), ended(1, -9)], 137),
    ([*BOTH, ended(0, 2), ended(1, 2)], 2),
    # An error in Python says nothing about the runs.
    ([*BOTH, ended(0, 1), ended(1, 1)], 70),
    ([placed(0), ended(0, 1), placed(1), ended(1, 0)], 0),
    # Nothing is left to do for a machine that is not free yet.
    ([placed(0), ended(0, 0)], 0),
    ([placed(0), ended(0, 3)], 1),
    ([placed(0), CTRL_C, ended(0, 143)], 130),
    ([CTRL_C], 130),
    ([placed(0), OVER, ended(0, 143)], 0),
    ([*BOTH, ended(0, 3), OVER, ended(1, 143)], 1),
  ],
)
def test_the_exit_code_tells_how_the_work_has_ended(happens, code):
  assert run(*happens)[0] == code


def test_a_second_signal_kills_the_runs_and_a_third_one_the_workers():
  _, engine, _ = run(*BOTH, *[CTRL_C] * 4, ended(0, -9), ended(1, -9))
  signals = [s for title, s in engine.signals if title == 'worker-0/0']
  assert signals == [signal.SIGTERM] * 2 + [signal.SIGKILL] * 2


def test_what_has_no_machine_when_it_stops_is_not_started():
  _, engine, _ = run(placed(0), CTRL_C, placed(1), ended(0, 143))
  assert engine.started == ['worker-0/0']


def test_lines_have_the_address_of_their_machine():
  _, _, lines = run(
    *BOTH,
    output(0, 'one\ntw'),
    output(0, 'an error', is_error=True),
    output(1, 'three'),
    output(0, 'o\n'),
    ended(0, 5),
    ended(1, 0),
  )
  assert lines == [
    *('[a] one', '[a] two', '[a] an error'),
    *('[a] The worker ended with exit code 5.', '[b] three'),
  ]


def test_a_machine_that_is_busy_is_waited_for():
  waiting = events.NodePending('worker-1/0', 'it asks for 2 cores.')
  _, _, lines = run(placed(0), waiting, ended(0, 0))
  assert lines == ['[b] waits for its machine: it asks for 2 cores.']


@pytest.fixture(name='machines', scope='module')
def start_machines():
  if not two_machines.PYTHON.exists():
    pytest.skip('needs the environment of `make ray`')
  with two_machines.start() as machines:
    yield machines


def work(code, folder, address):
  """Runs a program on both machines; returns its code and its lines."""
  lines = []
  code = cluster.work(
    [sys.executable, '-c', code, str(folder)],
    cluster.find_machines(address, PYTHON),
    address=address,
    python=PYTHON,
    say=lines.append,
  )
  said = [line.split('] ')[1] for line in lines]
  # A computer that is busy may take its time.
  return code, sorted(s for s in said if not s.startswith('waits for'))


def test_each_machine_has_a_worker(machines, tmp_path):
  # One has found nothing left to do, so that it does not matter that the other
  # one has failed.
  assert work(MEET, tmp_path, machines.address) == (
    0,
    [
      *('The worker ended with exit code 5.', 'has failed'),
      *('the first', 'the second'),
    ],
  )


def test_that_all_have_failed_is_told(machines, tmp_path):
  assert work('raise SystemExit(5)', tmp_path, machines.address)[0] == 5


def test_a_signal_stops_all_workers(machines):
  workers = []
  with subprocess.Popen(
    [sys.executable, '-c', STOPPED, machines.address, PYTHON],
    stdout=subprocess.PIPE,
    cwd=ROOT,
    text=True,
  ) as process:
    killer = threading.Timer(120, process.kill)
    killer.start()
    try:
      for line in process.stdout:
        found = re.search(r'\] pid (\d+)$', line)
        if found:
          workers.append(psutil.Process(int(found[1])))
        if len(workers) == 2:
          process.send_signal(signal.SIGINT)
    finally:
      process.kill()
      killer.cancel()
  assert process.returncode == 130
  assert len(workers) == 2
  assert not psutil.wait_procs(workers, timeout=10)[1]


def test_an_environment_without_ray_is_named():
  with pytest.raises(ValueError, match="No module named 'ray'. docs/"):
    cluster.find_machines('127.0.0.1:9', sys.executable)


def test_a_cluster_that_is_not_there_is_refused_before_anything(tmp_path):
  folder = tmp_path / 'folder'
  command = [
    *(sys.executable, '-m', 'experiments.paper', 'table3', '--scale=smoke'),
    *(f'--folder={folder}', '--ray_address=127.0.0.1:9'),
    f'--ray_python={PYTHON}',
  ]
  ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
  assert ended.returncode == 2 and not ended.stdout
  assert ended.stderr.count('\n') == 1
  assert "error: ray_address='127.0.0.1:9', ray_python=" in ended.stderr
  assert 'no head of a cluster answers at 127.0.0.1:9' in ended.stderr
  assert not folder.exists()


@pytest.mark.slow
def test_a_table_is_made_on_two_machines(machines, tmp_path):
  command = [
    *(sys.executable, '-m', 'experiments.paper', 'table9', '--scale=smoke'),
    *('--arms=r2d2,bt_ngu', '--seeds=0', f'--folder={tmp_path}'),
    *(f'--ray_address={machines.address}', f'--ray_python={PYTHON}'),
    '--slots=cpu:1',
  ]
  made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
  assert made.returncode == 0, made.stderr
  assert made.stdout.count('begins on core') == 3, made.stdout
  assert (tmp_path / 'results' / 'table9.md').exists()
  assert not list(tmp_path.glob('shared-*'))
  again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
  assert again.returncode == 0 and 'begins' not in again.stdout, again.stdout
