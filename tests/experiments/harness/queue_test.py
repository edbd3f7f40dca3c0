"""Workers on one folder: what they start, and how they take each end."""

import collections
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

from experiments.harness import dataset, jobs, queue, records, runs, slots
from tests.experiments.harness import fakes

_ROOT = pathlib.Path(__file__).parents[3]


def _worker(folder, kind, *, num_seeds=1, num_slots=2, **settings):
  return queue.Worker(
    folder,
    fakes.specs(num_seeds),
    [slots.Slot(f'slot {i}', {}) for i in range(num_slots)],
    start=fakes.start(kind),
    poll_seconds=0.02,
    say=lambda line: None,
    **settings,
  )


def _statuses(folder, num_seeds=1):
  return {
    f'{spec.arm} {spec.seed}': records.status_of(folder, spec)
    for spec in fakes.specs(num_seeds)
  }


def test_needs_come_first_and_all_is_done_once(tmp_path):
  outcome = _worker(tmp_path, 'ok', num_seeds=2).work()
  assert (outcome.done, outcome.left, outcome.failed) == (6, 0, [])
  done = fakes.executions(tmp_path)
  assert sorted(done) == sorted(spec.workdir for spec in fakes.specs(2))
  for spec in fakes.specs(2):
    for need in spec.needs:
      assert done.index(need.run.workdir) < done.index(spec.workdir)
  record = records.read(tmp_path, fakes.specs(1)[0])
  assert (record.attempts, record.failures, record.exit_code) == (1, 0, 0)
  assert not list(tmp_path.rglob('*.claim'))
  # Started again, nothing is left to do.
  assert _worker(tmp_path, 'fails', num_seeds=2).work().done == 6
  assert len(fakes.executions(tmp_path)) == 6


def test_a_failing_run_is_started_three_times(tmp_path):
  outcome = _worker(tmp_path, 'fails').work()
  assert {spec.arm for spec in outcome.failed} == {'ngu', 'r2d2'}
  assert [spec.arm for spec in outcome.blocked] == ['bt_ngu']
  assert (outcome.done, outcome.left) == (0, 0)
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
  # Another worker does not try again, until the records are removed.
  assert len(_worker(tmp_path, 'ok').work().failed) == 2
  for spec in outcome.failed:
    records.path_of(tmp_path, spec, 'json').unlink()
  assert _worker(tmp_path, 'ok').work().done == 3


def test_a_run_may_fail_and_then_succeed(tmp_path):
  assert _worker(tmp_path, 'fails_once').work().done == 3
  record = records.read(tmp_path, fakes.specs(1)[0])
  assert (record.attempts, record.failures, record.tail) == (2, 1, ())


def test_exit_code_0_without_a_completed_run_is_a_failure(tmp_path):
  assert len(_worker(tmp_path, 'lies').work().failed) == 2


def test_wrong_flags_stop_everything(tmp_path):
  outcome = _worker(tmp_path, 'wrong', num_slots=1).work()
  assert 'nonsense=1 is no flag' in outcome.wrong_flags
  assert 'launch/run_ngu.py' in outcome.wrong_flags
  assert len(fakes.executions(tmp_path)) == 1
  assert set(_statuses(tmp_path).values()) == {dataset.WAITING}


def test_the_end_of_the_hours_saves_and_frees(tmp_path):
  outcome = _worker(tmp_path, 'slow', hours=1 / 3600).work()
  assert (outcome.done, outcome.left, outcome.failed) == (0, 3, [])
  record = records.read(tmp_path, fakes.specs(1)[0])
  assert (record.attempts, record.failures, record.exit_code) == (1, 0, 130)
  assert set(_statuses(tmp_path).values()) == {dataset.WAITING}
  assert _worker(tmp_path, 'ok').work().done == 3


def test_ctrl_c_stops_the_worker(tmp_path):
  timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
  timer.start()
  before = signal.getsignal(signal.SIGINT)
  outcome = _worker(tmp_path, 'slow').work()
  assert outcome.signum == signal.SIGINT and outcome.left == 3
  assert signal.getsignal(signal.SIGINT) is before


def test_what_nohup_has_started_outlives_its_terminal():
  assert jobs.stops_here() == list(jobs.STOPS)
  before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
  try:
    assert jobs.stops_here() == [signal.SIGINT, signal.SIGTERM]
  finally:
    signal.signal(signal.SIGHUP, before)


def test_a_worker_that_lost_its_claim_lets_go(tmp_path, monkeypatch):
  monkeypatch.setattr(queue.jobs, '_TOUCH_SECONDS', 0.0)
  monkeypatch.setattr(queue.claiming.Claim, 'touch', lambda self: False)
  lines = []
  worker = _worker(tmp_path, 'slow', num_slots=1, hours=0.8 / 3600)
  worker._say = lines.append
  worker.work()
  assert any('another worker has taken it over' in line for line in lines)


def test_with_both_kinds_of_slots_runs_learn_on_gpus(tmp_path):
  lines = []
  gpu, cpu = slots.Slot('GPU', {}, is_gpu=True), slots.Slot('core', {})
  specs = fakes.specs(1)
  final = runs.RunSpec(
    *(runs.FINAL_EVALUATION, 'r2d2', fakes.ENV, 0, 'evaluate'),
    settings=(('episodes', 2),),
    needs=(runs.Need('workdir', specs[-1]),),
  )
  queue.Worker(
    tmp_path,
    [*specs, final],
    [cpu, gpu],
    start=fakes.start('ok'),
    poll_seconds=0.02,
    say=lines.append,
  ).work()
  begun = [line for line in lines if ': begins on' in line]
  assert [line.endswith('core') for line in begun] == [
    line.startswith(final.id) for line in begun
  ]
  assert len(begun) == 4


def _start(folder, kind, num_seeds):
  return subprocess.Popen(
    [sys.executable, fakes.__file__, 'work', folder, kind, str(num_seeds)],
    env={**os.environ, 'PYTHONPATH': str(_ROOT)},
    stdout=subprocess.PIPE,
    text=True,
  )


def test_of_two_workers_one_is_killed(tmp_path):
  num_seeds = 2
  one, other = (_start(tmp_path, 'slow', num_seeds) for _ in range(2))
  end = time.monotonic() + 60
  while len(fakes.executions(tmp_path)) < 2:
    assert time.monotonic() < end
    time.sleep(0.05)
  time.sleep(0.3)
  one.send_signal(signal.SIGKILL)
  output, _ = other.communicate(timeout=100)
  one.communicate()
  assert 'Outcome(done=6, failed=[], blocked=[], left=0' in output
  counts = collections.Counter(fakes.executions(tmp_path))
  # Only the run that the killed worker had is begun again.
  assert sorted(counts.values()) == [1, 1, 1, 1, 1, 2]
  assert not (tmp_path / 'overlaps').exists()
  assert set(_statuses(tmp_path, num_seeds).values()) == {dataset.DONE}


@pytest.mark.parametrize('text', ['cpu:0', 'cpu:999', 'gpu', 'gpu:0/9', 'x:1'])
def test_slots_that_there_are_not(text):
  with pytest.raises(ValueError, match=f'slots={text!r}'):
    slots.parse(text)


@pytest.mark.parametrize('text', ['gpu:0', 'cpu:1,gpu:7/2'])
def test_a_gpu_that_is_not_there_is_refused(text, monkeypatch):
  monkeypatch.setenv('JAX_PLATFORMS', 'cpu')  # On any machine.
  found = slots.parse(text)
  with pytest.raises(ValueError, match='slots=gpu:[07]: .*--slots=cpu'):
    slots.check(found)
  slots.check(slots.parse('cpu:1'))


def test_slots():
  cores = sorted(os.sched_getaffinity(0))
  cpu, one, half, other = slots.parse('cpu:1,gpu:3,gpu:0/2')
  assert cpu.cores == {cores[0]}
  assert cpu.variables['OMP_NUM_THREADS'] == '1'
  assert cpu.variables['JAX_PLATFORMS'] == 'cpu'
  assert one.variables['CUDA_VISIBLE_DEVICES'] == '3'
  assert 'XLA_PYTHON_CLIENT_MEM_FRACTION' not in one.variables
  assert half == other and not half.cores
  # With the inference servers' fifths, two runs fit on the GPU.
  fraction = float(half.variables['XLA_PYTHON_CLIENT_MEM_FRACTION'])
  assert 0 < 2 * (fraction + 0.2) < 1
  assert len(slots.parse('cpu')) == len(cores)
