"""The coordinator's counts, phases and logs, without other processes."""

import threading

import pytest

pytest.importorskip('acme', reason='needs the full environment')

from bt_acme.config import run as run_config
from bt_acme.runtime import coordinator as coordinator_lib
from bt_acme.runtime import node, progress
from tests.launch import scripts
from tests.runtime import contexts


@pytest.fixture(name='make')
def make_coordinator(tmp_path):
  made = []

  def make(context=None, **changes):
    settings = {'max_actor_steps': 100, 'num_evaluators': 2, **changes}
    run = run_config.RunConfig(workdir=str(tmp_path), **settings)
    made.append(
      coordinator_lib.Coordinator(
        run, progress.Progress, context or contexts.make()
      )
    )
    return made[-1]

  yield make
  for coordinator in made:
    coordinator.close()


def lease_all(coordinator, size, actor=0, attempt=0):
  granted = []
  while not granted or granted[-1]:
    granted.append(coordinator.lease(actor, attempt, size))
  return granted[:-1]


def test_leases_add_up_to_the_budget(make):
  assert lease_all(make(), 32) == [32, 32, 32, 4]
  assert lease_all(make(), 1000) == [100]


def test_leases_of_many_actors_add_up_to_the_budget(make):
  coordinator, granted = make(max_actor_steps=10_000), []
  threads = [
    threading.Thread(
      target=lambda i=i: granted.extend(lease_all(coordinator, 7, actor=i))
    )
    for i in range(8)
  ]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  assert sum(granted) == 10_000 and min(granted) > 0


def test_a_failed_actor_returns_its_lease(make, tmp_path):
  coordinator = make()
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


def test_steps_beyond_a_lease_are_taken_from_the_budget(make):
  coordinator = make()
  coordinator.lease(0, 0, 50)
  coordinator.report_acting(0, 0, 53, [])
  assert lease_all(coordinator, 100, actor=0, attempt=1) == [47]


@pytest.mark.parametrize('taken, left', [(60, [32, 8]), (100, []), (130, [])])
def test_a_resumed_run_has_the_rest_of_the_budget(make, taken, left):
  coordinator = make()
  coordinator.resume({'actor_steps': taken, 'learner_steps': 3})
  assert lease_all(coordinator, 32) == left
  assert coordinator.get_counts() == {'actor_steps': taken, 'learner_steps': 3}


@pytest.fixture(name='run')
def make_run(monkeypatch):
  """Runs a coordinator in a thread, with frequent polling."""
  monkeypatch.setattr(coordinator_lib, '_POLL_SECONDS', 0.01)

  def run(coordinator):
    thread = threading.Thread(target=coordinator.run, daemon=True)
    thread.start()
    return thread

  return run


def assert_stays(coordinator, thread, phase):
  thread.join(0.2)
  assert thread.is_alive()
  assert coordinator.poll() == phase


def test_a_run_goes_through_its_phases(make, run):
  coordinator = make()
  thread = run(coordinator)
  assert_stays(coordinator, thread, node.Phase.STARTING)
  coordinator.resume({})
  coordinator.increment(actor_steps=99)
  assert_stays(coordinator, thread, node.Phase.RUNNING)
  coordinator.increment(actor_steps=2)
  assert_stays(coordinator, thread, node.Phase.LEARNER_FINISHES)
  coordinator.learner_ended(True)
  coordinator.evaluator_done(1)
  coordinator.evaluator_done(1)  # This evaluator was restarted.
  assert_stays(coordinator, thread, node.Phase.EVALUATORS_FINISH)
  coordinator.evaluator_done(0)
  thread.join(5)
  assert not thread.is_alive()
  assert coordinator.poll() == node.Phase.DONE


def test_a_run_without_evaluators_ends_with_its_learner(make, run):
  coordinator = make(num_evaluators=0)
  thread = run(coordinator)
  coordinator.resume({'actor_steps': 100})
  assert_stays(coordinator, thread, node.Phase.LEARNER_FINISHES)
  coordinator.learner_ended(True)
  thread.join(5)
  assert not thread.is_alive()


def test_a_learner_that_was_stopped_does_not_end_the_run(make):
  coordinator = make()
  coordinator.resume({})
  coordinator.learner_ended(False)
  assert coordinator.poll() == node.Phase.RUNNING


def test_a_stopping_coordinator_waits_for_the_learner(make, run):
  stop = contexts.Stop()
  coordinator = make(contexts.make(stop))
  coordinator.resume({})
  stop.set()
  thread = run(coordinator)
  thread.join(0.3)
  assert thread.is_alive()
  coordinator.increment(learner_steps=1)  # Calls are still answered.
  coordinator.learner_ended(False)
  thread.join(5)
  assert not thread.is_alive()


def test_the_log_is_cut_to_the_checkpoint(make, tmp_path):
  row = {'episode_return': 2.0}
  first = make()
  first.resume({}, 0)
  for steps in (10, 20):
    first.report_acting(0, 0, steps, [row])
  _, counts, rows = first.poll_to_save({})
  assert (counts, rows) == ({'actor_steps': 30, 'learner_steps': 0}, 2)
  first.report_acting(0, 0, 5, [row] * 3)  # These rows are lost.
  second = make()
  second.resume(counts, rows)
  second.report_acting(0, 0, 5, [row])
  log = scripts.rows(tmp_path, 'actor')
  assert [r.get('actor_steps') for r in log] == ['10', '30', '35']
  assert second.poll_to_save({})[2] == 3
  # Earlier versions did not save the number of rows.
  make().resume(counts)
  assert len(scripts.rows(tmp_path, 'actor')) == 3


def test_episodes_are_logged_with_their_actor_steps(make, tmp_path):
  coordinator = make()
  coordinator.resume({'learner_steps': 5, 'actor_steps': 10})
  row = {'episode_return': 2.0, 'episode_length': 7}
  rows = [row, {**row, 'episode_return': 4.0}]
  coordinator.report_acting(0, 0, 20, rows)
  coordinator.report_evaluation(25, [row])
  actor = scripts.rows(tmp_path, 'actor')
  assert [float(r['episode_return']) for r in actor] == [2, 4]
  assert {r['actor_steps'] for r in actor} == {'30'}
  assert actor[0]['learner_steps'] == '5'
  evaluator = scripts.rows(tmp_path, 'evaluator')
  assert [r['actor_steps'] for r in evaluator] == ['25']
  progress = coordinator.progress()
  assert progress['episode_return'] == 3.0
  assert progress['evaluator_return'] == 2.0
  assert progress['actor_steps'] == 30


@pytest.mark.parametrize('max_rows', [50, 2_000])
def test_the_log_of_episodes_has_a_maximum_length(make, tmp_path, max_rows):
  coordinator = make(max_actor_steps=1_000, max_episode_rows=max_rows)
  coordinator.resume({'actor_steps': 0})
  rows = [{'episode_return': 1.0}] * 8
  for _ in range(200):
    assert coordinator.lease(0, 0, 5) == 5
    coordinator.report_acting(0, 0, 5, rows)
  coordinator.report_evaluation(7, [{'episode_return': 2.0}] * 100)
  num_rows = len(scripts.rows(tmp_path, 'actor'))
  if max_rows < 1_600:
    assert 0.9 * max_rows <= num_rows <= max_rows
  else:
    assert num_rows == 1_600
  assert len(scripts.rows(tmp_path, 'evaluator')) == 100


def test_a_poll_waits_for_the_lock(make):
  """A poll updates the progress line, which another thread may be reading."""
  coordinator = make()
  thread = threading.Thread(
    target=coordinator.poll_to_save, args=({'replay_size': 3},), daemon=True
  )
  with coordinator._lock:
    thread.start()
    thread.join(0.1)
    assert thread.is_alive() and not coordinator._status
  thread.join(5)
  assert coordinator.progress() == {'actor_steps': 0, 'replay_size': 3}


def test_a_run_never_returns_to_an_earlier_phase(make):
  coordinator = make()
  coordinator.learner_ended(True)
  coordinator.resume({})
  assert coordinator.poll() == node.Phase.EVALUATORS_FINISH
  assert list(node.Phase) == sorted(node.Phase) and node.Phase.RUNNING == 1


def test_evaluations_wait_until_the_disk_has_space(
  make, tmp_path, limit_file_size
):
  coordinator = make()
  assert coordinator.evaluations_are_logged()
  row = {'evaluation_point': 0, 'episode_return': 1.0}
  coordinator.report_evaluation(0, [row])
  assert coordinator.evaluations_are_logged()
  path = tmp_path / 'logs' / 'evaluator' / 'logs.csv'
  limit_file_size(path.stat().st_size)
  coordinator.report_evaluation(50, [{**row, 'evaluation_point': 50}])
  assert not coordinator.evaluations_are_logged()
  limit_file_size(None)
  assert coordinator.evaluations_are_logged()
  rows = scripts.rows(tmp_path, 'evaluator')
  points = [r['evaluation_point'] for r in rows]
  assert points == ['0', '50']
