"""Tests of figures of artificial runs, and of the runs behind their curves."""

import csv

import numpy as np
import pytest

from bt_acme.evaluation import intervals
from experiments.harness import dataset as dataset_lib
from experiments.paper import artifacts, normalized_scores, report, results
from tests.experiments.paper import fake_results as fake


def test_scores_are_means_between_the_lowest_and_the_highest_seed():
  values = fake.random(('r2d2', 'bt_ngu'), [fake.FAR, fake.NEAR])
  figure = fake.figure('fig9', fake.curves(values))
  near, far = figure.panels
  assert (near.title, far.title) == ('Empty-8x8', 'FourRooms:fixed')
  assert [line.label for line in far.lines] == ['R2D2', 'R2D2 + BT(NGU)']
  line = fake.line(far, 'bt_ngu')
  seeds = values['bt_ngu', fake.FAR]
  np.testing.assert_array_equal(line.frames, [0, 1_000, 2_000, 3_000, 4_000])
  np.testing.assert_allclose(line.values, np.mean(seeds, axis=0))
  np.testing.assert_array_equal(line.low, np.min(seeds, axis=0))
  np.testing.assert_array_equal(line.high, np.max(seeds, axis=0))


def test_a_single_seed_and_figure_10_have_no_bands():
  one = fake.figure('fig9', fake.random_curves(['r2d2'], [fake.FAR], seeds=1))
  assert np.isnan(one.panels[1].lines[0].low)
  many = fake.figure('fig10', fake.random_curves(['r2d2'], [fake.FAR]))
  assert np.isnan(many.panels[1].lines[0].low)
  assert 'bands' not in many.caption


def test_medians_are_computed_from_normalized_means():
  values = fake.random(('r2d2', 'ez'), [fake.NEAR, fake.FAR])
  figure = fake.figure('fig3', fake.curves(values))
  full, hard = figure.panels
  assert full.title == 'full: 2 environments'
  assert hard.title == 'hard: 1 environment'
  runs = np.stack(
    [
      normalized_scores.normalize(env, values['ez', env])
      for env in (fake.NEAR, fake.FAR)
    ],
    axis=1,
  )  # [seeds, envs, points]
  line = fake.line(full, 'ez')
  np.testing.assert_allclose(
    line.values, np.median(np.mean(runs, axis=0), axis=0)
  )
  for i in range(5):
    estimate = intervals.bootstrap(intervals.median, runs[..., i])
    assert (line.low[i], line.high[i]) == pytest.approx(estimate[1:])
  expected = normalized_scores.normalize(
    fake.FAR, np.mean(values['ez', fake.FAR], axis=0)
  )
  np.testing.assert_allclose(fake.line(hard, 'ez').values, expected)


def test_figure_4_shows_the_extra_action():
  run = fake.run('bt_ngu', fake.FAR, 0)
  shares = [0.5, float('nan'), 0.1]
  scores = fake.curve(run, [1.0, 2.0, 3.0], greedy_extra_share=shares)
  far, near = fake.figure('fig4', fake.data([run], scores)).panels
  np.testing.assert_array_equal(far.lines[0].values, [0.5, 0.1])
  np.testing.assert_array_equal(far.lines[0].frames, [0, 1_000])
  assert near.lines == ()


def test_figure_5_shows_the_policy_as_a_level():
  end, early = (
    fake.run('ngu', fake.FAR, 0, stage='zero_shot', pretraining_steps=steps)
    for steps in (100, 10)
  )
  data = fake.joined(
    fake.random_curves(['r2d2'], [fake.FAR]),
    fake.data([end, early], [fake.final(end, 0.25), fake.final(early, 0.75)]),
  )
  figure = fake.figure('fig5', data)
  (far,) = [p for p in figure.panels if p.title == 'FourRooms:fixed']
  assert far.levels == {'NGU, zero-shot': 0.25}
  assert [line.label for line in far.lines] == ['R2D2']
  assert len(figure.panels) == 6


def test_figure_2_has_a_point_for_each_budget():
  runs = [
    fake.run(
      arm, env, seed, stage=stage, pretraining_steps=steps, frames_per_step=4
    )
    for stage, arm in (('zero_shot', 'ngu'), ('transfer', 'bt_ngu'))
    for steps in (10, 100)
    for env in fake.SUITES['full']
    for seed in range(2)
  ]
  scores = [fake.final(r, r.pretraining_steps + r.seed) for r in runs]
  figure = fake.figure('fig2', fake.data(runs, scores))
  left, far, near = figure.panels
  line = fake.line(left, 'ngu')
  np.testing.assert_array_equal(line.frames, [40, 400])
  # Scores are the steps plus the seed.
  every = [
    normalized_scores.normalize(e, [10.5, 100.5]) for e in fake.SUITES['full']
  ]
  np.testing.assert_allclose(line.values, np.median(every, axis=0))
  assert left.levels == {}  # The published medians are for other games.
  after = fake.line(far, 'bt_ngu')
  np.testing.assert_allclose(after.frames, [40, 400])
  np.testing.assert_allclose(after.values, [10.5, 100.5])
  np.testing.assert_allclose(after.low, [10, 100])
  np.testing.assert_allclose(fake.line(near, 'ngu').high, [11, 101])
  picture = figure.draw('', ())
  assert picture.get_supxlabel() == 'frames of pre-training'
  assert picture.axes[0].get_xscale() == 'symlog'


def test_figure_2_falls_back_on_evaluations_during_pretraining():
  runs = [
    fake.run(arm, game, 0, stage='pretraining')._replace(
      budget_steps=fake.STEPS
    )
    for arm in ('ngu', 'rnd')
    for game in artifacts.PAPER_SUITES['full']
  ]
  scores = [score for run in runs for score in fake.curve(run, [1.0, 2.0, 4.0])]
  data = fake.data(runs, scores)
  figure = fake.figure('fig2', data, artifacts.PAPER_SUITES)
  left = figure.panels[0]
  labels = [line.label for line in left.lines]
  assert labels == ['NGU, zero-shot', 'RND, zero-shot']
  games = artifacts.PAPER_SUITES['full']
  every = [normalized_scores.normalize(game, [1, 2, 4]) for game in games]
  np.testing.assert_allclose(left.lines[0].values, np.median(every, axis=0))
  assert np.isnan(left.lines[0].low).all()
  assert left.levels == {
    'VISR, 100k interactions': 6.81,
    'APT, 100k interactions': 33.41,
  }


def test_figure_7_lists_the_parameters(tmp_path):
  data = fake.NOTHING
  written, _ = report.render('fig7', results.Results(data), tmp_path)
  assert [path.name for path in written] == ['fig7.csv', 'fig7.txt']
  rows = list(csv.DictReader(written[0].read_text().splitlines()))
  *each, total = rows
  # The paper's network on Atari: 18 actions and the extra action.
  assert total['numbers'] == '4357812'
  assert sum(int(row['numbers']) for row in each) == 4_357_812
  assert {
    'module': 'lstm/linear',
    'parameter': 'w',
    'shape': '1043 x 2048',
    'numbers': str(1_043 * 2_048),
  } in each
  assert '4,357,812' in written[1].read_text().splitlines()[-1]


@pytest.mark.parametrize(
  ('points', 'frames'),
  [
    (201, [0, 20, 40, 60, 80]),  # 2% of the budget: 80 of 4,000 frames.
    (11, [0, 400, 800]),
  ],
)
def test_figure_8_shows_the_start_of_training(points, frames):
  values = fake.random(['r2d2'], [fake.NEAR, fake.FAR], points=points)
  (line,) = fake.figure('fig8', fake.curves(values)).panels[0].lines
  np.testing.assert_array_equal(line.frames, frames)


def test_medians_use_only_environments_that_all_arms_have():
  values = fake.random(('r2d2', 'ez'), [fake.NEAR, fake.FAR])
  del values['ez', fake.NEAR]
  figure = fake.figure('fig3', fake.curves(values))
  full, hard = figure.panels
  assert full.title == 'full: 1 of 2 environments'
  lines = (fake.line(panel, 'r2d2').values for panel in (full, hard))
  np.testing.assert_array_equal(*lines)
  problems = dataset_lib.sentences(figure.problems)
  assert f'ez was not run on: {fake.NEAR}.' in problems


def test_unfinished_runs_count_only_if_no_run_is_done():
  far = fake.random_curves(['r2d2'], [fake.FAR], seeds=2)
  failed = far.runs[1]._replace(status=dataset_lib.FAILED, exit_code=1)
  near = fake.random_curves(['r2d2'], [fake.NEAR], seeds=1)
  running = near.runs[0]._replace(status=dataset_lib.RUNNING)
  waiting = fake.run('ez', fake.NEAR, 0, status=dataset_lib.WAITING)
  half = [s for s in near.scores if s.actor_steps <= fake.STEPS // 2]
  runs = far.runs[0], failed, running, waiting
  data = fake.data(runs, (*far.scores, *half))
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
  points = ((few, np.arange(3.0)), (many, np.arange(11.0)))
  scores = [score for one in points for score in fake.curve(*one)]
  data = fake.data([few, many], scores)
  (line,) = fake.figure('fig9', data).panels[1].lines
  np.testing.assert_array_equal(line.frames, [0, 500, 1_000])
  np.testing.assert_allclose(line.low, [0, 1, 2])
  np.testing.assert_allclose(line.high, [0, 5, 10])
