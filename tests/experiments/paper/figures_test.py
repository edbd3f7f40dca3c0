"""Tests of figures of artificial runs, and of the runs behind their curves."""

import csv
import itertools

import numpy as np
import pytest

from bt_acme.evaluation import intervals
from experiments.harness import dataset as dataset_lib
from experiments.paper import artifacts, report, results
from experiments.paper.normalized_scores import normalize
from tests.experiments.paper import fake_results as fake
from tests.experiments.paper.fake_results import FAR, NEAR, SUITES


def test_scores_are_means_between_the_lowest_and_the_highest_seed():
  values = fake.random(('r2d2', 'bt_ngu'), [FAR, NEAR])
  near, far = fake.figure('fig9', fake.curves(values)).panels
  assert (near.title, far.title) == ('Empty-8x8', 'FourRooms:fixed')
  assert [line.label for line in far.lines] == ['R2D2', 'R2D2 + BT(NGU)']
  line = fake.line(far, 'bt_ngu')
  seeds = values['bt_ngu', FAR]
  np.testing.assert_array_equal(line.frames, [0, 1_000, 2_000, 3_000, 4_000])
  np.testing.assert_allclose(line.values, np.mean(seeds, axis=0))
  np.testing.assert_array_equal(line.low, np.min(seeds, axis=0))
  np.testing.assert_array_equal(line.high, np.max(seeds, axis=0))


def test_a_single_seed_and_figure_10_have_no_bands():
  figures = [
    fake.figure(name, fake.curves(fake.random(['r2d2'], [FAR], seeds)))
    for name, seeds in (('fig9', 1), ('fig10', 3))
  ]
  assert all(np.isnan(one.panels[1].lines[0].low) for one in figures)
  assert 'bands' not in figures[1].caption


def test_medians_are_computed_from_normalized_means():
  values = fake.random(('r2d2', 'ez'), [NEAR, FAR])
  full, hard = fake.figure('fig3', fake.curves(values)).panels
  assert full.title == 'full: 2 environments'
  assert hard.title == 'hard: 1 environment'
  both = [normalize(env, values['ez', env]) for env in (NEAR, FAR)]
  runs = np.stack(both, axis=1)  # [seeds, envs, points]
  line = fake.line(full, 'ez')
  means = np.mean(runs, axis=0)
  np.testing.assert_allclose(line.values, np.median(means, axis=0))
  for i in range(5):
    estimate = intervals.bootstrap(intervals.median, runs[..., i])
    assert (line.low[i], line.high[i]) == pytest.approx(estimate[1:])
  np.testing.assert_allclose(fake.line(hard, 'ez').values, means[1])


def test_figure_4_shows_the_extra_action():
  run = fake.run('bt_ngu', FAR, 0)
  shares = [0.5, float('nan'), 0.1]
  scores = fake.curve(run, [1.0, 2.0, 3.0], greedy_extra_share=shares)
  far, near = fake.figure('fig4', fake.data([run], scores)).panels
  np.testing.assert_array_equal(far.lines[0].values, [0.5, 0.1])
  np.testing.assert_array_equal(far.lines[0].frames, [0, 1_000])
  assert near.lines == ()


def test_figure_5_shows_the_policy_as_a_level():
  end, early = (
    fake.run('ngu', FAR, 0, stage='zero_shot', pretraining_steps=steps)
    for steps in (100, 10)
  )
  data = fake.joined(
    fake.curves(fake.random(['r2d2'], [FAR])),
    fake.data([end, early], [fake.final(end, 0.25), fake.final(early, 0.75)]),
  )
  figure = fake.figure('fig5', data)
  (far,) = [p for p in figure.panels if p.title == 'FourRooms:fixed']
  assert far.levels == {'NGU, zero-shot': 0.25}
  assert [line.label for line in far.lines] == ['R2D2']
  assert len(figure.panels) == 6


def test_figure_2_has_a_point_for_each_budget():
  places = itertools.product(SUITES['full'], range(2))
  runs = [
    fake.run(arm, *place, stage=stage, pretraining_steps=n, frames_per_step=4)
    for place in places
    for stage, arm in (('zero_shot', 'ngu'), ('transfer', 'bt_ngu'))
    for n in (10, 100)
  ]
  # A third seed of one budget is not shown.
  runs += [run._replace(run_id=f'{run.run_id}, 2', seed=2) for run in runs[:1]]
  scores = [fake.final(r, r.pretraining_steps + r.seed) for r in runs]
  figure = fake.figure('fig2', fake.data(runs, scores))
  assert '16 runs' in figure.caption
  left, far, near = figure.panels
  line = fake.line(left, 'ngu')
  np.testing.assert_array_equal(line.frames, [40, 400])
  # Scores are the steps plus the seed.
  every = [normalize(env, [10.5, 100.5]) for env in SUITES['full']]
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
  games = artifacts.PAPER_SUITES['full']
  curves = {(arm, x): [[1, 2, 4]] for arm in ('ngu', 'rnd') for x in games}
  data = fake.curves(curves, stage='pretraining')
  runs = (run._replace(budget_steps=fake.STEPS) for run in data.runs)
  figure = fake.figure(
    'fig2', fake.data(runs, data.scores), artifacts.PAPER_SUITES
  )
  left = figure.panels[0]
  labels = [line.label for line in left.lines]
  assert labels == ['NGU, zero-shot', 'RND, zero-shot']
  every = [normalize(game, [1, 2, 4]) for game in games]
  np.testing.assert_allclose(left.lines[0].values, np.median(every, axis=0))
  assert np.isnan(left.lines[0].low).all()
  assert left.levels == {
    'VISR, 100k interactions': 6.81,
    'APT, 100k interactions': 33.41,
  }


def test_figure_7_lists_the_parameters(tmp_path):
  written, _ = report.render('fig7', results.Results(fake.NOTHING), tmp_path)
  assert [path.name for path in written] == ['fig7.csv', 'fig7.txt']
  rows = list(csv.DictReader(written[0].read_text().splitlines()))
  *each, total = rows
  # The paper's network on Atari: 18 actions and the extra action.
  assert total['numbers'] == '4357812'
  assert sum(int(row['numbers']) for row in each) == 4_357_812
  row = ('lstm/linear', 'w', '1043 x 2048', str(1_043 * 2_048))
  names = ('module', 'parameter', 'shape', 'numbers')
  assert dict(zip(names, row, strict=True)) in each
  assert '4,357,812' in written[1].read_text().splitlines()[-1]


@pytest.mark.parametrize(
  ('points', 'frames'),
  [
    (201, [0, 20, 40, 60, 80]),  # 2% of the budget: 80 of 4,000 frames.
    (11, [0, 400, 800]),
  ],
)
def test_figure_8_shows_the_start_of_training(points, frames):
  values = fake.random(['r2d2'], [NEAR, FAR], points=points)
  figure = fake.figure('fig8', fake.curves(values))
  (line,) = figure.panels[0].lines
  np.testing.assert_array_equal(line.frames, frames)
  assert f'Shown are the first {frames[-1]} frames.' in figure.caption


def test_medians_use_only_environments_that_all_arms_have():
  values = fake.random(('r2d2', 'ez'), [NEAR, FAR])
  del values['ez', NEAR]
  figure = fake.figure('fig3', fake.curves(values))
  full, hard = figure.panels
  assert full.title == 'full: 1 of 2 environments'
  lines = (fake.line(panel, 'r2d2').values for panel in (full, hard))
  np.testing.assert_array_equal(*lines)
  problems = dataset_lib.sentences(figure.problems)
  assert f'ez was not run on: {NEAR}.' in problems


def test_unfinished_runs_count_only_if_no_run_is_done():
  far = fake.curves(fake.random(['r2d2'], [FAR], seeds=2))
  failed = far.runs[1]._replace(status=dataset_lib.FAILED, exit_code=1)
  near = fake.curves(fake.random(['r2d2'], [NEAR], seeds=1))
  running = near.runs[0]._replace(status=dataset_lib.RUNNING)
  waiting = fake.run('ez', NEAR, 0, status=dataset_lib.WAITING)
  half = [s for s in near.scores if s.actor_steps <= fake.STEPS // 2]
  runs = far.runs[0], failed, running, waiting
  figure = fake.figure('fig9', fake.data(runs, (*far.scores, *half)))
  (near_line,), (far_line,) = (panel.lines[:1] for panel in figure.panels)
  assert (near_line.frames[-1], far_line.frames[-1]) == (2_000, 4_000)
  assert far_line.values.tolist() == [s.return_mean for s in far.scores[:5]]
  problems = ' '.join(dataset_lib.sentences(figure.problems))
  assert f'Failed with exit code 1: {failed.run_id}' in problems
  for run in (running, waiting):
    assert f'Not done ({run.status}): {run.run_id}' in problems


def test_curves_are_interpolated_at_the_steps_of_the_shortest_one():
  few, many = fake.run('r2d2', FAR, 0), fake.run('r2d2', FAR, 1)
  points = ((few, np.arange(3.0)), (many, np.arange(11.0)))
  scores = [score for one in points for score in fake.curve(*one)]
  data = fake.data([few, many], scores)
  (line,) = fake.figure('fig9', data).panels[1].lines
  np.testing.assert_array_equal(line.frames, [0, 500, 1_000])
  np.testing.assert_allclose(line.low, [0, 1, 2])
  np.testing.assert_allclose(line.high, [0, 5, 10])
