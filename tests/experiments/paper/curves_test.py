"""Tests of the runs, environments and frames behind curves."""

import numpy as np

from experiments.harness import dataset as dataset_lib
from experiments.paper import normalized_scores
from tests.experiments.paper import fake_results as fake


def test_medians_use_only_environments_that_all_arms_have():
  values = fake.random(('r2d2', 'ez'), [fake.NEAR, fake.FAR])
  del values['ez', fake.NEAR]
  figure = fake.figure('fig3', fake.curves(values))
  full, hard = figure.panels
  assert full.title == 'full: 1 of 2 environments'
  np.testing.assert_array_equal(
    fake.line(full, 'r2d2').values, fake.line(hard, 'r2d2').values
  )
  problems = dataset_lib.sentences(figure.problems)
  assert f'ez was not run on: {fake.NEAR}.' in problems


def test_excess_seeds_are_ignored_and_reported():
  values = fake.random(['r2d2'], [fake.NEAR, fake.FAR])
  values['r2d2', fake.FAR] = values['r2d2', fake.FAR][:2]
  figure = fake.figure('fig3', fake.curves(values))
  expected = np.median(
    [
      np.mean(normalized_scores.normalize(env, values['r2d2', env][:2]), axis=0)
      for env in (fake.NEAR, fake.FAR)
    ],
    axis=0,
  )
  np.testing.assert_allclose(figure.panels[0].lines[0].values, expected)
  (problem,) = [
    x for x in dataset_lib.sentences(figure.problems) if 'seeds' in x
  ]
  assert 'only 2 seeds' in problem and problem.endswith(f': {fake.FAR}.')
  assert 'seeds per environment: 2;' in figure.caption


def test_unfinished_runs_count_only_if_no_run_is_done():
  far = fake.random_curves(['r2d2'], [fake.FAR], seeds=2)
  failed = far.runs[1]._replace(status=dataset_lib.FAILED, exit_code=1)
  near = fake.random_curves(['r2d2'], [fake.NEAR], seeds=1)
  running = near.runs[0]._replace(status=dataset_lib.RUNNING)
  waiting = fake.run('ez', fake.NEAR, 0, status=dataset_lib.WAITING)
  half = tuple(s for s in near.scores if s.actor_steps <= fake.STEPS // 2)
  data = dataset_lib.Dataset(
    (far.runs[0], failed, running, waiting), (*far.scores, *half)
  )
  figure = fake.figure('fig9', data)
  near_panel, far_panel = figure.panels
  assert near_panel.lines[0].frames[-1] == 2_000
  assert far_panel.lines[0].frames[-1] == 4_000
  assert far_panel.lines[0].values.tolist() == [
    s.return_mean for s in far.scores if s.run_id == far.runs[0].run_id
  ]
  problems = ' '.join(dataset_lib.sentences(figure.problems))
  assert f'Failed with exit code 1: {failed.run_id}' in problems
  assert f'Not done (running): {running.run_id}' in problems
  assert f'Not done (waiting): {waiting.run_id}' in problems


def test_curves_are_interpolated_at_the_steps_of_the_shortest_one():
  few, many = fake.run('r2d2', fake.FAR, 0), fake.run('r2d2', fake.FAR, 1)
  data = dataset_lib.Dataset(
    (few, many),
    (*fake.curve(few, [0.0, 1.0, 2.0]), *fake.curve(many, np.arange(11.0))),
  )
  (line,) = fake.figure('fig9', data).panels[1].lines
  np.testing.assert_array_equal(line.frames, [0, 500, 1_000])
  np.testing.assert_allclose(line.low, [0, 1, 2])
  np.testing.assert_allclose(line.high, [0, 5, 10])
