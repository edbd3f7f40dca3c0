"""Tests with a real Ray cluster of two simulated machines."""

import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

from experiments.harness import cluster, driver, records, runs
from tests.experiments.harness import fakes
from tests.runtime.engines import two_machines

PYTHON = str(two_machines.PYTHON)
ROOT = pathlib.Path(__file__).parents[3]


@pytest.fixture(name='machines', scope='module')
def start_machines():
  if not two_machines.PYTHON.exists():
    pytest.skip('needs the environment of `make ray`')
  with two_machines.start() as machines:
    yield machines


def _work(folder, machines, kind, *, text='cpu:1', meanwhile=lambda: None):
  """Executes six fake runs; returns the outcome and the printed lines."""
  lines = []
  joined = cluster.Cluster(machines.address, PYTHON)
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(runs, 'command_of', fakes.command_of(kind))
    try:
      worker = driver.Worker(
        folder,
        fakes.specs(2),
        joined.processes(text),
        say=lines.append,
        poll_seconds=0.05,
      )
      threading.Thread(target=meanwhile).start()
      return worker.work(), lines
    finally:
      joined.close()


def _wait_for_executions(folder, number):
  end = time.monotonic() + 60
  while len(fakes.executions(folder)) < number:
    assert time.monotonic() < end
    time.sleep(0.05)


def test_runs_are_executed_in_the_slots_of_all_machines(machines, tmp_path):
  outcome, lines = _work(tmp_path, machines, 'ok')
  assert (outcome.done, outcome.exit_code) == (6, 0)
  starts = [line for line in lines if 'starting on a core of the clust' in line]
  assert len(starts) == 6
  record = records.read(tmp_path, fakes.specs(2)[0])
  assert (record.attempts, record.exit_code) == (1, 0)


def test_the_record_of_a_failure_has_exit_code_and_output(machines, tmp_path):
  outcome, _ = _work(tmp_path, machines, 'fails')
  assert (len(outcome.failed), len(outcome.blocked)) == (4, 2)
  record = records.read(tmp_path, outcome.failed[0])
  assert (record.failures, record.exit_code) == (3, 1)
  assert record.tail[-1] == 'line 99'


def test_ctrl_c_stops_running_and_waiting_runs(machines, tmp_path):
  def interrupt():
    _wait_for_executions(tmp_path, 2)
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGINT)

  outcome, _ = _work(tmp_path, machines, 'long', meanwhile=interrupt)
  assert (outcome.done, outcome.left, outcome.exit_code) == (0, 6, 130)
  assert not list(tmp_path.rglob('lock'))  # No fake run is left.
  codes = {records.read(tmp_path, s).exit_code for s in fakes.specs(2)}
  assert codes == {-1, 130}


def test_a_directory_that_machines_do_not_share_is_reported(machines, tmp_path):
  joined = cluster.Cluster(machines.address, PYTHON)
  try:
    (process,) = joined.processes('cpu:1')[:1]
    call = fakes.specs(1)[0].call(tmp_path)
    future = process.start(call, tmp_path / 'nowhere' / 'log')
    with pytest.raises(ValueError, match='that all machines share'):
      process.exit_code(future)
  finally:
    joined.close()


def test_slots_that_no_machine_offers_are_rejected(machines):
  joined = cluster.Cluster(machines.address, PYTHON)
  try:
    assert len(joined.processes('cpu,gpu:0')) == 4
    with pytest.raises(ValueError, match="slots='gpu:0': no machine"):
      joined.processes('gpu:0')
  finally:
    joined.close()


def test_an_environment_without_ray_is_reported():
  with pytest.raises(ValueError, match="No module named 'ray'. See docs/"):
    cluster.Cluster('auto', sys.executable)


def test_a_missing_cluster_is_rejected_before_any_work(tmp_path):
  if not two_machines.PYTHON.exists():
    pytest.skip('needs the environment of `make ray`')
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
  assert 'no cluster head answers at 127.0.0.1:9' in ended.stderr
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
  assert made.stdout.count('starting on a core') == 3, made.stdout
  assert (tmp_path / 'results' / 'table9.md').exists()
  again = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
  assert again.returncode == 0 and 'starting' not in again.stdout, again.stdout


# This test must be the last, because it crashes one of the machines.
def test_the_runs_of_a_lost_machine_are_resumed_on_the_others(
  machines, tmp_path
):
  def crash():
    _wait_for_executions(tmp_path, 2)
    machines.crash()

  outcome, lines = _work(tmp_path, machines, 'slow', meanwhile=crash)
  assert (outcome.done, outcome.failed) == (6, [])
  assert any('stopped; can be resumed' in line for line in lines)
