"""Tests of workers: which runs they start, and how they handle exit codes."""

import errno
import functools
import os
import signal
import subprocess
import sys
import threading
import time
from unittest import mock

import psutil
import pytest

from experiments import launching
from experiments.harness import dataset, execution, locks, records, workers
from experiments.harness.processes import PROCESS_LOST, Process, Slot
from tests.experiments.harness import fakes
from tests.launch import scripts


@pytest.fixture(name='work')
def make_work(tmp_path):
  """Returns a function that executes runs with a worker."""

  def work(*todo, num_slots=2, **settings):
    slots = [Slot(f'slot {i}', {}) for i in range(num_slots)]
    settings = {'say': lambda line: None, **settings}
    return workers.Worker(tmp_path, todo, slots, **settings).work()

  return work


@pytest.fixture(name='complete')
def make_complete(tmp_path, capsys):
  """Returns a function that executes runs in one process."""

  def complete(*todo):
    code = execution.complete(todo, tmp_path, processes=1)
    return code, capsys.readouterr().out.splitlines()

  return complete


def test_dependencies_come_first_and_runs_are_done_once(tmp_path, work):
  first, other = fakes.Write('first'), fakes.Write('other')
  last = fakes.Write('last', (first,))
  outcome = work(last, other, first)
  assert (outcome.done, outcome.left, outcome.failed) == (3, 0, [])
  done = fakes.executions(tmp_path)
  assert sorted(done) == ['first', 'last', 'other']
  assert done.index('first') < done.index('last')
  record = records.read(tmp_path, first)
  assert (record.attempts, record.failures, record.exit_code) == (1, 0, 0)
  assert not list(tmp_path.rglob('run.lock'))
  # A second worker has nothing left to do.
  assert work(last, other, first).done == 3
  assert len(fakes.executions(tmp_path)) == 3


def test_a_failing_run_is_started_three_times(tmp_path, work):
  fails = fakes.Write('fails')
  blocked, other = fakes.Write('blocked', (fails,)), fakes.Write('other')
  outcome = work(fails, blocked, other)
  assert (outcome.failed, outcome.blocked) == ([fails], [blocked])
  assert (outcome.done, outcome.left, outcome.exit_code) == (1, 0, 1)
  # The failed run may belong to another worker.
  assert outcome._replace(failed=[]).exit_code == 1
  record = records.read(tmp_path, fails)
  assert (record.attempts, record.failures, record.exit_code) == (3, 3, 1)
  assert record.tail[-1] == 'ValueError: It fails.'
  assert records.status_of(tmp_path, fails) == dataset.FAILED
  assert records.status_of(tmp_path, blocked) == dataset.WAITING
  # Another worker does not try again until the record is deleted.
  assert work(fails).failed == [fails]
  assert fakes.counts(tmp_path)['fails'] == 3
  records.path_of(tmp_path, fails, 'json').unlink()
  work(fails)
  assert fakes.counts(tmp_path)['fails'] == 6


@pytest.mark.parametrize(
  ('kind', 'done', 'failures'),
  [('once', 1, 1), ('incomplete', 0, 3), ('ends', 1, 0)],
)
def test_only_a_completed_run_is_done(tmp_path, work, kind, done, failures):
  """An exit code of 0 without a completed run is a failure."""
  run = fakes.Write(kind)
  outcome = work(run)
  assert (outcome.done, len(outcome.failed)) == (done, 1 - done)
  record = records.read(tmp_path, run)
  assert record.failures == failures
  assert not done or record.tail == ()


def test_the_time_limit_stops_runs_that_can_be_resumed(tmp_path, work):
  run = fakes.Write('waits')
  outcome = work(run, hours=2 / 3600)
  assert (outcome.done, outcome.left, outcome.failed) == (0, 1, [])
  assert outcome.exit_code == 75
  assert records.read(tmp_path, run)[:2] == (1, 0)  # Attempts and failures.
  assert records.status_of(tmp_path, run) == dataset.WAITING
  (tmp_path / 'go').touch()
  assert work(run).done == 1


@pytest.mark.parametrize(
  ('kind', 'times', 'pause'),
  [('waits', 1, 0.4), ('stubborn', 2, 0.4), ('stubborn', 2, 0.05)],
)
def test_ctrl_c_stops_the_worker_and_a_second_one_kills(
  tmp_path, work, kind, times, pause
):
  def press():
    scripts.wait_until(lambda: fakes.executions(tmp_path))
    for _ in range(times):
      time.sleep(pause)
      os.kill(os.getpid(), signal.SIGINT)

  before = signal.getsignal(signal.SIGINT)
  threading.Thread(target=press).start()
  start = time.monotonic()
  outcome = work(fakes.Write(kind), fakes.Write('other', (fakes.Write(kind),)))
  assert time.monotonic() < start + 60
  assert (outcome.signum, outcome.left) == (signal.SIGINT, 2)
  assert outcome.exit_code == 130
  assert signal.getsignal(signal.SIGINT) is before
  assert records.read(tmp_path, fakes.Write(kind)).failures == 0


def test_only_ctrl_c_kills_runs_that_stop(tmp_path):
  worker = workers.Worker(tmp_path, [], [])
  with mock.patch.object(worker, '_kill') as kill:
    for signum in (signal.SIGHUP, signal.SIGHUP, signal.SIGTERM):
      worker._note_signal(signum)
    assert not kill.called
    worker._note_signal(signal.SIGINT)
    assert kill.called


def test_a_full_disk_stops_the_worker_with_advice(tmp_path, work, monkeypatch):
  error = OSError(errno.ENOSPC, 'full')
  monkeypatch.setattr(records, 'end', mock.Mock(side_effect=error))
  with pytest.raises(ValueError, match='full. Free disk space'):
    work(fakes.Write('waits'), fakes.Write('other'))
  assert not list(tmp_path.glob('*.lock'))  # The other run was stopped.


def test_a_worker_drops_a_run_whose_lock_is_lost(work, monkeypatch):
  monkeypatch.setattr(locks, '_TOUCH_SECONDS', 0.0)
  monkeypatch.setattr(os, 'utime', mock.Mock(side_effect=FileNotFoundError))
  lines = []
  work(fakes.Write('waits'), num_slots=1, hours=0.8 / 3600, say=lines.append)
  assert any('another worker has taken it over' in line for line in lines)


def test_a_run_that_is_still_saving_is_not_started_again(tmp_path, work):
  saving, other = fakes.Write('saving'), fakes.Write('other')
  workdir = tmp_path / records.WORKDIRS / saving.id
  with locks.workdir_lock.held(str(workdir)):
    outcome = work(
      saving, other, on_end=lambda *_: os.kill(os.getpid(), signal.SIGINT)
    )
  assert (outcome.done, outcome.left) == (1, 1)
  assert work(saving, other).done == 2


def test_with_both_kinds_of_slots_training_uses_gpus(tmp_path):
  lines = []
  slots = [Slot('core', {}), Slot('GPU', {}, is_gpu=True)]
  first = fakes.Write('first')
  final = fakes.Write('final', (first,), is_evaluation=True)
  todo = [first, fakes.Write('other'), final]
  workers.Worker(tmp_path, todo, slots, say=lines.append).work()
  starts = sorted(line for line in lines if 'starting' in line)
  assert starts == [
    'final: starting on core',
    *(f'{run}: starting on GPU' for run in ('first', 'other')),
  ]


def test_one_process_executes_ready_runs_sequentially(tmp_path, complete):
  first = fakes.Write('first')
  last = fakes.Write('last', (first,))
  code, shown = complete(last, first)
  expected = f'1 of 2: {first}', f'2 of 2: {last}'
  assert (code, shown) == (0, [f'{run}: explored in 0 s' for run in expected])
  lines = (tmp_path / 'executions').read_text().splitlines()
  assert len({line.split(' ', 1)[1] for line in lines}) == 1
  assert lines[0].endswith(' 1')  # One thread.
  assert records.tail_of_log(tmp_path, last) == ('last is logged',)


def test_failures_and_crashes_are_reported_and_other_runs_continue(complete):
  fails, crashes = fakes.Write('fails'), fakes.Write('crashes')
  code, lines = complete(fails, fakes.Write('blocked', (fails,)), crashes)
  assert code == 1
  assert lines[:5] == [
    *(f'fails: exit code 1, failure {i} of 3' for i in (1, 2, 3)),
    f'crashes: exit code {PROCESS_LOST}, failure 1 of 3',
    f'1 of 3: {crashes}: explored in 0 s',
  ]
  assert '; exit code 1: ValueError: It fails. Delete ' in lines[5]
  assert '1 done, 0 left, 1 failed, 1 blocked by a failed' in lines[6]
  assert 'Rerun the same command to continue.' in lines[6]


def test_the_script_of_a_killed_process_is_stopped(tmp_path):
  process, log = Process(Slot('', {})), tmp_path / 'log'
  code = 'import os, time; print(os.getpid(), flush=True); time.sleep(200)'
  command = [sys.executable, '-c', code]
  process.start(functools.partial(launching.execute, command, tmp_path), log)
  scripts.wait_until(lambda: log.exists() and log.read_text().endswith('\n'))
  (script,) = psutil.Process(process._process.pid).children()
  os.kill(process._process.pid, signal.SIGKILL)
  assert process.connection.poll(100)
  assert process.poll(print) == PROCESS_LOST
  _, alive = psutil.wait_procs([script], timeout=100)
  assert all(each.status() == psutil.STATUS_ZOMBIE for each in alive)


def test_a_second_worker_repeats_the_run_of_a_killed_worker(tmp_path):
  ids = ['waits_1', 'waits_2', 'waits_3']
  command = [sys.executable, fakes.__file__, 'complete', *ids]
  one, other = (
    subprocess.Popen(command, cwd=tmp_path, env=scripts.ENVIRONMENT)
    for _ in range(2)
  )
  scripts.wait_until(lambda: sum(fakes.counts(tmp_path).values()) == 2)
  one.send_signal(signal.SIGKILL)
  one.wait()
  # The process of the killed worker stops.
  scripts.wait_until(lambda: len(list(tmp_path.glob('waits_*.lock'))) == 1)
  (tmp_path / 'go').touch()
  assert other.wait(timeout=240) == 0
  # Only the run of the killed worker is started twice.
  assert sorted(fakes.counts(tmp_path).values()) == [1, 1, 2]
  assert all((tmp_path / each).exists() for each in ids)
