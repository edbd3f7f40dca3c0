"""Which runs are read, on which worlds, and up to which frames."""

import numpy as np

from experiments.harness import dataset as dataset_lib
from experiments.paper import results
from tests.experiments.paper import fake_results as fake


def test_medians_are_taken_over_worlds_that_all_arms_have():
  values = fake.random(('r2d2', 'ez'), [fake.NEAR, fake.FAR])
  del values['ez', fake.NEAR]
  figure = fake.figure('fig3', fake.curves(values))
  full, hard = figure.panels
  assert full.title == 'full: 1 of 2 worlds'
  np.testing.assert_array_equal(
    fake.line(full, 'r2d2').values, fake.line(hard, 'r2d2').values
  )
  told = results.sentences(figure.problems)
  assert f'ez was not run on: {fake.NEAR}.' in told
  assert any('Not in medians' in x and fake.NEAR in x for x in told)
  # Arms without any run at all leave the others alone.
  assert f'bt_ngu was not run on: {fake.NEAR}, {fake.FAR}.' in told


def test_uneven_seeds_are_cut_and_named():
  values = fake.random(['r2d2'], [fake.NEAR, fake.FAR])
  values['r2d2', fake.FAR] = values['r2d2', fake.FAR][:2]
  figure = fake.figure('fig3', fake.curves(values))
  expected = np.median(
    [
      np.mean(fake.tenth(env, values['r2d2', env][:2]), axis=0)
      for env in (fake.NEAR, fake.FAR)
    ],
    axis=0,
  )
  np.testing.assert_allclose(figure.panels[0].lines[0].values, expected)
  (told,) = [x for x in results.sentences(figure.problems) if 'seeds' in x]
  assert 'first 2 seeds' in told and told.endswith(f': {fake.FAR}.')
  assert 'seeds of each world: 2;' in figure.caption


def test_runs_that_are_not_done_count_only_where_none_is():
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
  told = ' '.join(results.sentences(figure.problems))
  assert f'Failed with exit code 1: {failed.run_id}' in told
  assert f'as it has come (running): {running.run_id}' in told
  assert f'Not done (waiting): {waiting.run_id}' in told


def test_medians_do_not_wait_for_a_run_that_has_just_begun():
  values = fake.random(['r2d2'], [fake.NEAR, fake.FAR], seeds=1)
  whole = fake.curves(values)
  near, far = whole.runs
  begun = near._replace(status=dataset_lib.RUNNING)
  first = tuple(
    s for s in whole.scores if s.run_id == far.run_id or s.actor_steps == 0
  )
  data = dataset_lib.Dataset((begun, far), first)
  figure = fake.figure('fig3', data)
  full, _ = figure.panels
  assert full.title == 'full: 1 of 2 worlds'
  np.testing.assert_allclose(
    full.lines[0].values, fake.tenth(fake.FAR, values['r2d2', fake.FAR][0])
  )
  # Where no run is done, all count as far as all have come.
  both = (begun, far._replace(status=dataset_lib.RUNNING))
  full, _ = fake.figure('fig3', data._replace(runs=both)).panels
  assert full.title == 'full: 2 worlds'
  np.testing.assert_array_equal(full.lines[0].frames, [0])
  # Runs that were never at the same steps have no line.
  apart = tuple(
    s
    for s in whole.scores
    if (s.actor_steps > 500) == (s.run_id == near.run_id)
  )
  figure = fake.figure('fig3', dataset_lib.Dataset(both, apart))
  assert figure.panels[0].lines == ()
  told = results.sentences(figure.problems)
  assert 'Without common steps are the runs of: r2d2.' in told


def test_runs_meet_at_the_steps_of_the_one_with_the_fewest():
  few, many = fake.run('r2d2', fake.FAR, 0), fake.run('r2d2', fake.FAR, 1)
  data = dataset_lib.Dataset(
    (few, many),
    (*fake.curve(few, [0.0, 1.0, 2.0]), *fake.curve(many, np.arange(11.0))),
  )
  (line,) = fake.figure('fig9', data).panels[1].lines
  np.testing.assert_array_equal(line.frames, [0, 500, 1_000])
  np.testing.assert_allclose(line.low, [0, 1, 2])
  np.testing.assert_allclose(line.high, [0, 5, 10])
  # Frames that only one of them has are not drawn.
  later = data._replace(
    scores=tuple(
      s for s in data.scores if s.run_id == few.run_id or s.actor_steps > 400
    )
  )
  (line,) = fake.figure('fig9', later).panels[1].lines
  np.testing.assert_array_equal(line.frames, [500, 1_000])
