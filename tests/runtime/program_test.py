"""The coordinator's counts and phases, without any process."""

import csv
import threading
import time

import numpy as np
import pytest

pytest.importorskip('launchpad', reason='needs the full environment')

from bt_acme.acting import vector_actor
from bt_acme.config import run as run_config
from bt_acme.environments import vector
from bt_acme.runtime import program as program_lib
from tests.agents import fakes


@pytest.fixture(name='make')
def make_coordinator(tmp_path):
  def make(**changes):
    settings = {'max_actor_steps': 100, 'num_evaluators': 2, **changes}
    run = run_config.RunConfig(workdir=str(tmp_path), **settings)
    return program_lib.Coordinator(run)

  return make


def lease_all(coordinator, size):
  granted = []
  while not granted or granted[-1]:
    granted.append(coordinator.lease(size))
  return granted[:-1]


def test_leases_meet_the_budget(make):
  assert lease_all(make(), 32) == [32, 32, 32, 4]
  assert lease_all(make(), 1000) == [100]


def test_leases_of_many_actors_meet_the_budget(make):
  coordinator, granted = make(max_actor_steps=10_000), []
  threads = [
    threading.Thread(target=lambda: granted.extend(lease_all(coordinator, 7)))
    for _ in range(8)
  ]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  assert sum(granted) == 10_000 and min(granted) > 0


@pytest.mark.parametrize('taken, left', [(60, [32, 8]), (100, []), (130, [])])
def test_a_resumed_run_has_what_is_left(make, taken, left):
  coordinator = make()
  coordinator.start({'actor_steps': taken, 'learner_steps': 3})
  assert lease_all(coordinator, 32) == left
  assert coordinator.get_counts() == {'actor_steps': taken, 'learner_steps': 3}


class Counter:
  """Counts the transitions that a sink is given."""

  def __init__(self):
    self.count = 0

  def add(self, transition):
    self.count += 1

  def end_episode(self, *final):
    pass


@pytest.mark.parametrize('inference', ['local', 'server'])
def test_an_actor_hands_on_what_it_counts(make, monkeypatch, inference):
  monkeypatch.setattr(program_lib.lp, 'wait_for_stop', lambda seconds: False)
  num, budget = 4, 51
  coordinator = make(
    max_actor_steps=budget, envs_per_actor=num, inference=inference
  )
  coordinator.start({})
  run = coordinator._run
  agent = fakes.make_agent('r2d2')
  groups, sinks = [], [Counter() for _ in range(num)]
  for first in range(0, num, run.group_size):
    part = slice(first, first + run.group_size)
    actor = vector_actor.VectorActor(
      agent,
      epsilons=np.full(run.group_size, 0.5),
      seed=0,
      first_environment=first,
      sinks=sinks[part],
    )
    actor.update_variables(fakes.variables_of(agent))
    worlds = vector.VectorEnvironment(
      [fakes.MarkedEnvironment(i) for i in range(num)[part]]
    )
    groups.append(program_lib._Group(first, worlds, actor, worlds.reset()))
  node = program_lib.ActorNode(run, None, None, None, coordinator, 0)
  node._act(groups, [])
  counted = coordinator.get_counts()['actor_steps']
  assert budget <= counted < budget + num
  assert sum(sink.count for sink in sinks) == counted


@pytest.fixture(name='run')
def make_run(monkeypatch):
  """Runs a coordinator's loop; nothing tells it to stop."""
  monkeypatch.setattr(
    program_lib.lp, 'wait_for_stop', lambda seconds: time.sleep(0.01)
  )

  def run(coordinator):
    thread = threading.Thread(target=coordinator.run, daemon=True)
    thread.start()
    return thread

  return run


def assert_stays(coordinator, thread, phase):
  thread.join(0.2)
  assert thread.is_alive()
  assert coordinator.poll()[0] == phase


def test_a_run_goes_through_its_phases(make, run):
  coordinator = make()
  thread = run(coordinator)
  assert_stays(coordinator, thread, program_lib._STARTING)
  coordinator.start({})
  coordinator.increment(actor_steps=99)
  assert_stays(coordinator, thread, program_lib._RUNNING)
  coordinator.increment(actor_steps=2)
  assert_stays(coordinator, thread, program_lib._LEARNER_FINISHES)
  coordinator.learner_ended(True)
  coordinator.evaluator_done()
  assert_stays(coordinator, thread, program_lib._EVALUATORS_FINISH)
  coordinator.evaluator_done()
  thread.join(5)
  assert not thread.is_alive()
  assert coordinator.poll()[0] == program_lib._DONE


def test_a_run_without_evaluators_ends_with_its_learner(make, run):
  coordinator = make(num_evaluators=0)
  thread = run(coordinator)
  coordinator.start({'actor_steps': 100})
  assert_stays(coordinator, thread, program_lib._LEARNER_FINISHES)
  coordinator.learner_ended(True)
  thread.join(5)
  assert not thread.is_alive()


def test_a_learner_that_was_stopped_does_not_end_the_run(make):
  coordinator = make()
  coordinator.start({})
  coordinator.learner_ended(False)
  assert coordinator.poll()[0] == program_lib._RUNNING


def test_told_to_stop_it_waits_for_the_learner(make, monkeypatch):
  monkeypatch.setattr(program_lib.lp, 'wait_for_stop', lambda seconds: True)
  coordinator = make()
  coordinator.start({})
  thread = threading.Thread(target=coordinator.run, daemon=True)
  thread.start()
  thread.join(0.3)
  assert thread.is_alive()
  coordinator.increment(learner_steps=1)  # It still answers.
  coordinator.learner_ended(False)
  thread.join(5)
  assert not thread.is_alive()


def read(path):
  with path.open() as file:
    return list(csv.DictReader(file))


def test_episodes_are_logged_with_the_steps_that_made_them(make, tmp_path):
  coordinator = make()
  coordinator.start({'learner_steps': 5, 'actor_steps': 10})
  row = {'episode_return': 2.0, 'episode_length': 7}
  coordinator.report_episodes('actor', [row, {**row, 'episode_return': 4.0}])
  coordinator.increment(actor_steps=20)
  coordinator.report_episodes('evaluator', [row], 25)
  actor = read(tmp_path / 'logs' / 'actor' / 'logs.csv')
  assert [float(r['episode_return']) for r in actor] == [2, 4]
  assert {r['actor_steps'] for r in actor} == {'10'}
  assert actor[0]['learner_steps'] == '5'
  evaluator = read(tmp_path / 'logs' / 'evaluator' / 'logs.csv')
  assert [r['actor_steps'] for r in evaluator] == ['25']
  progress = coordinator._progress()
  assert progress['episode_return'] == 3.0
  assert progress['evaluator_return'] == 2.0
  assert progress['actor_steps'] == 30
