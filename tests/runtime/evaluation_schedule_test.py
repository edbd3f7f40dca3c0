"""The evaluations of a run, across restarts and changes of the budget."""

import types

import jax
import numpy as np
import pytest

from bt_acme.config import run as run_config
from bt_acme.core.intrinsic import reward_statistics as reward_lib
from bt_acme.evaluation import logs
from bt_acme.runtime import evaluation_schedule, metrics_logger
from tests.agents import fakes


@pytest.mark.parametrize(
  'last, begin, actor_steps, points',
  [
    (-1, -1, 0, [0]),
    (0, -1, 99, []),
    (0, -1, 100, [100]),
    (0, -1, 205, [100, 200]),
    # The end of a budget that is not a multiple, and steps beyond it.
    (200, -1, 249, []),
    (200, -1, 250, [250]),
    (200, -1, 303, [250]),
    (250, -1, 303, []),
    # A resumed run without earlier evaluations.
    (-1, 120, 120, []),
    (-1, 120, 203, [200]),
    (-1, 303, 303, [250]),
    # The end of an earlier, smaller budget, which is not a multiple.
    (150, 150, 250, [200, 250]),
    # The last evaluation was later than the checkpoint.
    (200, 120, 205, []),
  ],
)
def test_pending_points(last, begin, actor_steps, points):
  run = run_config.RunConfig(evaluation_period=100, max_actor_steps=250)
  state = {'last': last, 'begin': begin, 'actor_steps': actor_steps}
  assert evaluation_schedule.pending(run, **state) == points


def test_the_last_point_of_a_log():
  assert evaluation_schedule.last_point([]) == -1
  rows = [{'evaluation_point': 20.0, 'actor_steps': 23.0}]
  assert evaluation_schedule.last_point(rows) == 20
  # Two evaluators may finish out of order, and old versions had no points.
  rows += [{'actor_steps': 17.0, 'evaluation_point': 10.0}, {}]
  assert evaluation_schedule.last_point(rows) == 20
  assert evaluation_schedule.last_point([{'actor_steps': 23.0}]) == 23


STATISTICS = reward_lib.IntrinsicStatistics(
  *(np.float64(x) for x in (50.0, 0.1, 1 / 3, 40.0, 0.2))
)


@pytest.fixture(name='agent', scope='module')
def make_agent():
  return fakes.make_agent('ngu')


@pytest.fixture(name='run')
def make_run(tmp_path):
  return run_config.RunConfig(
    workdir=str(tmp_path), evaluation_period=100, max_actor_steps=250
  )


def learner_of(agent, seed=0, statistics=None):
  return types.SimpleNamespace(
    variables=fakes.variables_of(agent, seed),
    statistics=types.SimpleNamespace(merged=lambda: statistics),
  )


def log(run, point):
  logger = metrics_logger.MetricsLogger(run.workdir, 'evaluator')
  logger.write({'actor_steps': point + 3, 'evaluation_point': point})
  logger.close()


def test_evaluations_survive_a_restart(run, agent):
  first, later = learner_of(agent), learner_of(agent, 1, STATISTICS)
  queue = evaluation_schedule.Queue(run, 0)
  queue.enqueue(0, first)
  queue.enqueue(0, later)  # Already stored.
  point, taken = queue.take(0, later)
  assert (point, taken.actor_steps) == (0, 0) and taken.statistics is None
  jax.tree.map(np.testing.assert_array_equal, taken.variables, first.variables)
  assert queue.take(1, None) is None  # No variables are copied.
  queue.enqueue(105, later)
  assert queue.take(1, first)[0] == 100
  # Stopped before the evaluation was removed, so rows may be missing.
  log(run, 0)
  # The run resumes from an older checkpoint.
  queue = evaluation_schedule.Queue(run, 90)
  queue.enqueue(101, first)
  assert not logs.read_rows(logs.path_of(run.workdir, 'evaluator'))
  assert queue.take(0, first)[0] == 0
  queue.remove(0)
  point, taken = queue.take(0, first)
  assert (point, taken.actor_steps) == (100, 105)
  assert taken.statistics == STATISTICS
  jax.tree.map(np.testing.assert_array_equal, taken.variables, later.variables)
  assert queue.take(1, first) is None
  queue.remove(100)
  log(run, 100)
  queue = evaluation_schedule.Queue(run, 90)
  queue.enqueue(199, first)
  assert queue.take(0, first) is None
  queue.enqueue(252, first)
  assert [queue.take(i, first)[0] for i in range(2)] == [200, 250]


def test_a_restarted_evaluator_repeats_its_evaluation(run, agent):
  learner = learner_of(agent)
  queue = evaluation_schedule.Queue(run, 0)
  queue.enqueue(105, learner)
  assert [queue.take(i, learner)[0] for i in range(2)] == [0, 100]
  assert queue.take(0, learner)[0] == 0
  log(run, 0)  # The evaluator failed again after logging some rows.
  assert queue.take(0, learner)[0] == 0
  queue.remove(0)
  queue.enqueue(200, learner)
  assert queue.take(0, learner)[0] == 200
  queue.remove(100)
  assert queue.take(1, learner) is None
