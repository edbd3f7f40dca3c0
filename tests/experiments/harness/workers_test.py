"""Tests of workers: which runs they start, and how they handle exit codes."""

import collections
import functools
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest

from bt_acme.runtime import interrupts
from experiments import launching
from experiments.harness import (
  dataset,
  locks,
  processes,
  progress,
  records,
  runs,
  workers,
)
from tests.experiments.harness import fakes
from tests.launch import scripts


@pytest.fixture(name='worker')
def make_worker(tmp_path, monkeypatch):
  """Returns a factory of workers that execute fake runs of one kind."""

  def worker(kind, *, num_seeds=1, num_slots=2, **settings):
    monkeypatch.setattr(launching, 'command_of', fakes.command_of(kind))
    return workers.Worker(
      tmp_path,
      fakes.specs(num_seeds),
      [processes.Slot(f'slot {i}', {}) for i in range(num_slots)],
      **{'say': lambda line: None, **settings},
    )

  return worker


def _statuses(folder, num_seeds=1):
  return {
    f'{spec.arm} {spec.seed}': records.status_of(folder, spec)
    for spec in fakes.specs(num_seeds)
  }


def test_dependencies_come_first_and_runs_are_done_once(tmp_path, worker):
  outcome = worker('ok', num_seeds=2).work()
  assert (outcome.done, outcome.left, outcome.failed) == (6, 0, [])
  done = fakes.executions(tmp_path)
  assert sorted(done) == sorted(spec.workdir for spec in fakes.specs(2))
  for spec in fakes.specs(2):
    for need in spec.needs:
      assert done.index(need.run.workdir) < done.index(spec.workdir)
  record = records.read(tmp_path, fakes.specs(1)[0])
  assert (record.attempts, record.failures, record.exit_code) == (1, 0, 0)
  assert not list(tmp_path.rglob('run.lock'))
  # A second worker has nothing left to do.
  assert worker('fails', num_seeds=2).work().done == 6
  assert len(fakes.executions(tmp_path)) == 6


def test_a_failing_run_is_started_three_times(tmp_path, worker):
  outcome = worker('fails').work()
  assert {spec.arm for spec in outcome.failed} == {'ngu', 'r2d2'}
  assert [spec.arm for spec in outcome.blocked] == ['bt_ngu']
  # The failed runs may belong to another worker.
  assert outcome._replace(failed=[]).exit_code == 1
  assert (outcome.done, outcome.left, outcome.exit_code) == (0, 0, 1)
  counts = collections.Counter(fakes.executions(tmp_path))
  assert sorted(counts.values()) == [3, 3]
  record = records.read(tmp_path, outcome.failed[0])
  assert (record.attempts, record.failures, record.exit_code) == (3, 3, 1)
  assert record.tail == tuple(f'line {i}' for i in range(60, 100))
  assert _statuses(tmp_path) == {
    'ngu 0': dataset.FAILED,
    'r2d2 0': dataset.FAILED,
    'bt_ngu 0': dataset.WAITING,
  }
  # Another worker does not try again until the records are deleted.
  assert len(worker('ok').work().failed) == 2
  for spec in outcome.failed:
    records.path_of(tmp_path, spec, 'json').unlink()
  assert worker('ok').work().done == 3


@pytest.mark.parametrize(
  ('kind', 'done', 'failed'), [('fails_once', 3, 0), ('incomplete', 0, 2)]
)
def test_only_a_completed_run_is_done(tmp_path, worker, kind, done, failed):
  """An exit code of 0 without a completed run is a failure."""
  outcome = worker(kind).work()
  assert (outcome.done, len(outcome.failed)) == (done, failed)
  record = records.read(tmp_path, fakes.specs(1)[0])
  if done:
    assert (record.attempts, record.failures, record.tail) == (2, 1, ())


def test_invalid_flags_stop_the_worker(tmp_path, worker):
  outcome = worker('wrong', num_slots=1).work()
  assert 'nonsense=1 is not a flag' in outcome.wrong_flags
  assert 'launch/run_ngu.py' in outcome.wrong_flags
  assert outcome.exit_code == 2
  assert len(fakes.executions(tmp_path)) == 1
  assert set(_statuses(tmp_path).values()) == {dataset.WAITING}


def test_the_time_limit_stops_runs_that_can_be_resumed(tmp_path, worker):
  outcome = worker('long', hours=2 / 3600).work()
  assert (outcome.done, outcome.left, outcome.failed) == (0, 3, [])
  record = records.read(tmp_path, fakes.specs(1)[0])
  assert (record.attempts, record.failures) == (1, 0)
  assert set(_statuses(tmp_path).values()) == {dataset.WAITING}
  assert worker('ok').work().done == 3


def _interrupt_later(folder, times=1):
  """Presses Ctrl-C one or more times after a run has started."""

  def press():
    scripts.wait_until(lambda: fakes.executions(folder))
    for _ in range(times):
      time.sleep(0.4)
      os.kill(os.getpid(), signal.SIGINT)

  threading.Thread(target=press).start()


@pytest.mark.parametrize(('kind', 'times'), [('long', 1), ('stubborn', 2)])
def test_ctrl_c_stops_the_worker_and_a_second_one_kills(
  tmp_path, worker, kind, times
):
  before = signal.getsignal(signal.SIGINT)
  _interrupt_later(tmp_path, times)
  start = time.monotonic()
  outcome = worker(kind).work()
  assert time.monotonic() < start + 60
  assert (outcome.signum, outcome.left) == (signal.SIGINT, 3)
  assert outcome.exit_code == 130
  assert signal.getsignal(signal.SIGINT) is before
  assert records.read(tmp_path, fakes.specs(1)[0]).failures == 0


def test_a_process_started_with_nohup_survives_its_terminal():
  before = signal.getsignal(signal.SIGHUP)  # Ignored if nohup runs the tests.
  try:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    assert interrupts.stop_signals() == list(records.STOPS)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    assert interrupts.stop_signals() == [signal.SIGINT, signal.SIGTERM]
  finally:
    signal.signal(signal.SIGHUP, before)


def test_a_worker_drops_a_run_whose_lock_is_lost(worker, monkeypatch):
  monkeypatch.setattr(locks.Lock, 'touch', lambda self: False)
  lines = []
  worker('long', num_slots=1, hours=0.8 / 3600, say=lines.append).work()
  assert any('another worker has taken it over' in line for line in lines)


def _interrupt(run, news, is_done):
  del run, news, is_done
  os.kill(os.getpid(), signal.SIGINT)


def test_a_script_that_is_still_saving_is_not_started_again(tmp_path, worker):
  spec = fakes.specs(1)[0]
  with locks.workdir_lock.held(str(tmp_path / spec.workdir)):
    outcome = worker('ok', on_end=_interrupt).work()
  assert (outcome.done, outcome.left) == (1, 2)
  assert worker('ok').work().done == 3


def test_with_both_kinds_of_slots_training_uses_gpus(tmp_path, monkeypatch):
  monkeypatch.setattr(launching, 'command_of', fakes.command_of('ok'))
  lines = []
  gpu, cpu = processes.Slot('GPU', {}, is_gpu=True), processes.Slot('core', {})
  specs = fakes.specs(1)
  final = runs.RunSpec(
    *(runs.FINAL_EVALUATION, 'r2d2', fakes.ENV, 0, 'evaluate'),
    settings=(('episodes', 2),),
    needs=(runs.Need('workdir', specs[-1]),),
  )
  workers.Worker(tmp_path, [*specs, final], [cpu, gpu], say=lines.append).work()
  starts = [line for line in lines if ': starting on' in line]
  assert [line.endswith('core') for line in starts] == [
    line.startswith(final.id) for line in starts
  ]
  assert len(starts) == 4


def _start(folder, *command):
  return subprocess.Popen(
    [sys.executable, fakes.__file__, *command],
    cwd=folder,
    env=scripts.ENVIRONMENT,
    stdout=subprocess.PIPE,
    text=True,
  )


def test_a_second_worker_resumes_the_run_of_a_killed_worker(tmp_path):
  one, other = (_start(tmp_path, 'work', 'waits', '2') for _ in range(2))
  scripts.wait_until(lambda: len(list(tmp_path.rglob('lock'))) == 2)
  one.send_signal(signal.SIGKILL)
  one.communicate()
  scripts.wait_until(lambda: len(list(tmp_path.rglob('lock'))) == 1)
  (tmp_path / 'go').touch()
  output, _ = other.communicate(timeout=240)
  assert 'Outcome(done=6, failed=[], blocked=[], left=0' in output
  counts = collections.Counter(fakes.executions(tmp_path))
  # Only the run of the killed worker is started twice.
  assert sorted(counts.values()) == [1, 1, 1, 1, 1, 2]
  assert not (tmp_path / 'overlaps').exists()
  assert set(_statuses(tmp_path, 2).values()) == {dataset.DONE}


# Runs that are functions instead of scripts.


@pytest.fixture(name='complete')
def make_complete(tmp_path, capsys):
  """Returns a function that executes runs in one process."""

  def complete(*todo):
    code = progress.complete(todo, tmp_path, processes=1)
    lines = capsys.readouterr().out.splitlines()
    # Progress may be shown at any time.
    return code, [line for line in lines if ' runs done | ' not in line]

  return complete


def test_one_process_executes_ready_runs_sequentially(
  tmp_path, complete, monkeypatch
):
  news = []
  monkeypatch.setattr(
    progress.ProgressLine, 'update', lambda self, *values: news.append(values)
  )
  first = fakes.Write('first')
  last = fakes.Write('last', (first,))
  assert complete(last, first) == (
    *(
      0,
      [f'1 of 2: {first}: explored in 0 s', f'2 of 2: {last}: explored in 0 s'],
    ),
  )
  assert [(run, steps) for run, steps, _ in news] == [(first, 0), (last, 0)]
  lines = (tmp_path / 'executions').read_text().splitlines()
  assert len({line.split(' ', 1)[1] for line in lines}) == 1
  assert lines[0].endswith(' 1')  # One thread.
  for run in (first, last):
    assert records.tail_of_log(tmp_path, run) == (f'{run.id} is logged',)
    assert records.read(tmp_path, run).attempts == 1


def test_a_failure_is_reported_and_other_runs_continue(tmp_path, complete):
  fails = fakes.Write('fails')
  blocked, other = fakes.Write('blocked', (fails,)), fakes.Write('other')
  code, lines = complete(fails, blocked, other)
  assert code == 1
  assert lines[:4] == [
    *(f'fails: exit code 1, failure {i} of 3' for i in (1, 2, 3)),
    f'1 of 3: {other}: explored in 0 s',
  ]
  assert '; exit code 1: ValueError: It fails. Delete ' in lines[4]
  assert '1 done, 0 left, 1 failed, 1 blocked by a failed' in lines[5]
  assert len(lines) == 6
  assert records.status_of(tmp_path, fails) == dataset.FAILED


def test_a_crashed_process_is_replaced(complete):
  crashes, other = fakes.Write('crashes'), fakes.Write('other')
  assert complete(crashes, other) == (
    0,
    [
      f'crashes: exit code {processes.PROCESS_LOST}, failure 1 of 3',
      f'1 of 2: {crashes}: explored in 0 s',
      f'2 of 2: {other}: explored in 0 s',
    ],
  )


def test_the_script_of_a_killed_process_is_stopped(tmp_path):
  process, log = processes.Process(processes.Slot('', {})), tmp_path / 'log'
  code = 'import os, time; print(os.getpid(), flush=True); time.sleep(200)'
  command = [sys.executable, '-c', code]
  process.start(functools.partial(launching.execute, command, tmp_path), log)
  while not (log.exists() and log.read_text().endswith('\n')):
    assert process.wait(0.1, print) is None
  (script,) = psutil.Process(process._process.pid).children()
  os.kill(process._process.pid, signal.SIGKILL)
  assert process.wait(100, print) == processes.PROCESS_LOST
  _, alive = psutil.wait_procs([script], timeout=100)
  assert all(each.status() == psutil.STATUS_ZOMBIE for each in alive)


def test_a_second_worker_repeats_the_function_of_a_killed_worker(tmp_path):
  names = ['slow_1', 'slow_2', 'slow_3']
  one, other = (_start(tmp_path, 'complete', *names) for _ in range(2))
  scripts.wait_until(lambda: sum(fakes.counts(tmp_path).values()) == 2)
  one.send_signal(signal.SIGKILL)
  one.communicate()
  (tmp_path / 'go').touch()
  other.communicate(timeout=240)
  assert other.returncode == 0
  # Only the run of the killed worker is started twice.
  assert sorted(fakes.counts(tmp_path).values()) == [1, 1, 2]
  assert all((tmp_path / name).exists() for name in names)
  scripts.wait_until(lambda: not any(map(_is_alive, fakes.processes(tmp_path))))


def _is_alive(process_id):
  try:
    os.kill(process_id, 0)
  except ProcessLookupError:
    return False
  stat = pathlib.Path(f'/proc/{process_id}/stat').read_text()
  return stat.rpartition(')')[2].split()[0] != 'Z'


def test_a_run_stopped_by_a_signal_can_be_resumed(tmp_path):
  worker = _start(tmp_path, 'complete', 'slow')
  scripts.wait_until(functools.partial(fakes.counts, tmp_path))
  worker.send_signal(signal.SIGINT)
  output, _ = worker.communicate(timeout=240)
  assert worker.returncode == 128 + signal.SIGINT
  assert 'Rerun the same command to continue.' in output
  slow = fakes.Write('slow')
  assert records.status_of(tmp_path, slow) == dataset.WAITING
