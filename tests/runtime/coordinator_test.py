"""The coordinator's counts, phases and logs, without other processes."""

import contextlib
import errno
import itertools
import threading

import pytest

from bt_acme.config import run as run_config
from bt_acme.runtime import coordinator as coordinator_lib
from bt_acme.runtime import metrics_logger, node, progress
from tests.launch import scripts
from tests.runtime import contexts

START = {'actor_steps': 0, 'learner_steps': 0}


@pytest.fixture(name='stop')
def make_stop():
  return threading.Event()


@pytest.fixture(name='coordinator')
def make_coordinator(tmp_path, stop):
  run = run_config.RunConfig(
    workdir=str(tmp_path), max_actor_steps=100, num_evaluators=2
  )
  context = contexts.make(stop)
  coordinator = coordinator_lib.Coordinator(run, progress.Progress, context)
  with contextlib.closing(coordinator):
    yield coordinator


def lease_all(coordinator, size, actor=0, attempt=0):
  granted = []
  while not granted or granted[-1]:
    granted.append(coordinator.lease(actor, attempt, size))
  return granted[:-1]


def test_a_failed_actor_returns_its_lease(coordinator, tmp_path):
  assert coordinator.lease(0, 0, 60) == 60
  assert coordinator.lease(1, 0, 60) == 40
  coordinator.report_acting(0, 0, 25, [{'episode_return': 1.0}])
  assert coordinator.lease(1, 0, 60) == 0
  # The next attempt gets the uncounted steps, but only once.
  assert lease_all(coordinator, 20, actor=0, attempt=1) == [20, 15]
  assert lease_all(coordinator, 20, actor=0, attempt=2) == [20, 15]
  # Earlier attempts may be cut off and still running.
  assert coordinator.lease(0, 1, 20) is None
  coordinator.report_acting(0, 1, 30, [{'episode_return': 9.0}])
  coordinator.report_acting(0, 2, 35, [])
  coordinator.report_acting(1, 0, 40, [])
  assert coordinator.get_counts() == {'actor_steps': 100}
  rows = scripts.rows(tmp_path, 'actor')
  assert [row['episode_return'] for row in rows] == ['1.0']


def test_steps_beyond_a_lease_are_taken_from_the_budget(coordinator):
  coordinator.lease(0, 0, 50)
  coordinator.report_acting(0, 0, 53, [])
  assert lease_all(coordinator, 100, actor=0, attempt=1) == [47]


@pytest.mark.parametrize('taken, left', [(60, [32, 8]), (100, []), (130, [])])
def test_a_resumed_run_has_the_rest_of_the_budget(coordinator, taken, left):
  coordinator.resume({'actor_steps': taken, 'learner_steps': 3})
  assert lease_all(coordinator, 32) == left
  assert coordinator.get_counts() == {'actor_steps': taken, 'learner_steps': 3}


def test_a_run_goes_through_its_phases(coordinator):

  def phase():
    assert coordinator.iterate() is not None
    return coordinator.poll()[0]

  coordinator.start()
  assert phase() == node.Phase.STARTING == 0
  coordinator.resume(START)
  coordinator.increment(actor_steps=99)
  coordinator.learner_ended(False)  # It was only told to stop.
  assert phase() == node.Phase.RUNNING == 1
  coordinator.increment(actor_steps=1)
  assert phase() == node.Phase.LEARNER_FINISHES == 2
  coordinator.learner_ended(True)
  coordinator.evaluator_done(1)
  coordinator.evaluator_done(1)  # This evaluator was restarted.
  coordinator.resume(START)  # A run never returns to an earlier phase.
  assert phase() == node.Phase.EVALUATORS_FINISH == 3
  coordinator.evaluator_done(0)
  assert coordinator.iterate() is None
  assert coordinator.poll()[0] == node.Phase.DONE == 4


def test_a_stopping_coordinator_waits_for_the_learner(coordinator, stop):
  coordinator.resume(START)
  stop.set()
  thread = threading.Thread(target=coordinator.run, daemon=True)
  thread.start()
  thread.join(0.3)
  assert thread.is_alive()
  coordinator.increment(learner_steps=1)  # Calls are still answered.
  coordinator.learner_ended(False)
  thread.join(5)
  assert not thread.is_alive()


def test_episodes_are_logged_with_their_actor_steps(coordinator, tmp_path):
  coordinator.resume({'learner_steps': 5, 'actor_steps': 10})
  row = {'episode_return': 2.0, 'episode_length': 7}
  rows = [row, {**row, 'episode_return': 4.0}]
  coordinator.report_acting(0, 0, 20, rows)
  coordinator.report_evaluation(25, [{**row, 'evaluation_point': 20}])
  actor = scripts.rows(tmp_path, 'actor')
  assert [float(r['episode_return']) for r in actor] == [2, 4]
  assert {r['actor_steps'] for r in actor} == {'30'}
  assert actor[0]['learner_steps'] == '5'
  evaluator = scripts.rows(tmp_path, 'evaluator')
  assert [r['actor_steps'] for r in evaluator] == ['25']
  coordinator.poll(replay_size=3)
  progress = coordinator.progress()
  assert progress['replay_size'] == 3 and progress['episode_return'] == 3.0
  assert progress['evaluator_return'] == 2.0
  assert progress['actor_steps'] == 30


@pytest.fixture(name='fail_to_write')
def make_failure(monkeypatch):
  """Makes some writes of rows fail, from the second on."""
  append, calls = metrics_logger.CSVTable.append, itertools.count(1)

  def fail(number):
    def append_or_fail(table, row):
      if 1 < next(calls) <= number + 1:
        raise OSError(errno.EIO, 'no answer')
      append(table, row)

    monkeypatch.setattr(metrics_logger.CSVTable, 'append', append_or_fail)

  return fail


def test_a_write_error_loses_no_row_of_an_evaluation(
  coordinator, tmp_path, fail_to_write
):
  rows = [{'evaluation_point': 0, 'episode_return': i} for i in range(3)]
  fail_to_write(1)
  with pytest.raises(OSError, match='no answer'):
    coordinator.report_evaluation(0, rows)
  assert coordinator.report_evaluation(0, rows)
  written = scripts.rows(tmp_path, 'evaluator')
  assert [row['episode_return'] for row in written] == ['0', '1', '2']


def test_a_write_error_loses_no_row_of_counted_steps(
  coordinator, tmp_path, fail_to_write
):
  coordinator.resume(START)
  fail_to_write(4)
  rows = [{'episode_return': i} for i in range(4)]
  coordinator.report_acting(0, 0, 10, rows)  # Fails three times.
  assert coordinator.get_counts()['actor_steps'] == 10
  # The node fails, and the program restarts from its last checkpoint.
  with pytest.raises(OSError, match='no answer'):
    coordinator.iterate()
  coordinator.iterate()
  written = scripts.rows(tmp_path, 'actor')
  assert [row['episode_return'] for row in written] == ['0', '1', '2', '3']


def test_evaluations_wait_until_the_disk_has_space(
  coordinator, tmp_path, limit_file_size
):

  def report(point):
    row = {'evaluation_point': point, 'episode_return': 1.0}
    return coordinator.report_evaluation(point, [row])

  assert report(0)
  path = tmp_path / 'logs' / 'evaluator' / 'logs.csv'
  limit_file_size(path.stat().st_size)
  assert not report(50) and not report(50)
  limit_file_size(None)
  assert report(50) and report(0)  # Each evaluation is logged once.
  rows = scripts.rows(tmp_path, 'evaluator')
  assert [r['evaluation_point'] for r in rows] == ['0', '50']
