"""Figures of made-up runs: what is drawn, and what is said to be missing."""

import csv

import numpy as np
import pytest

from bt_acme.evaluation import intervals, panels
from experiments.harness import dataset as dataset_lib
from experiments.paper import artifacts, figures, network_table, results
from tests.experiments.paper import fake_results as fake

_SUITES = {
  **fake.SUITES,
  'strategies': (fake.FAR, fake.NEAR),
  'tasks': tuple(
    f'{world}{reward}'
    for world in (fake.NEAR, fake.FAR)
    for reward in ('', ':easy', ':hard')
  ),
}
_LEARNING = [arm for arm in artifacts.TITLES if arm not in artifacts.ZERO_SHOT]


def _tenth(env, returns):
  """Normalizes so that worlds differ."""
  return 10 * np.asarray(returns) + (env == fake.FAR)


def _make(figure_id, dataset, suites=_SUITES):
  return figures.make(figure_id, dataset, suites, _tenth)


def _curves(values, **fields):
  """A data set of runs; `values` are those of all seeds by arm and world."""
  runs, scores = [], []
  for (arm, env), seeds in values.items():
    for seed, curve in enumerate(seeds):
      runs.append(fake.run(arm, env, seed, frames_per_step=4, **fields))
      scores += fake.curve(runs[-1], curve, greedy_extra_share=abs(curve))
  return dataset_lib.Dataset(tuple(runs), tuple(scores))


def _random(arms, envs, seeds=3, points=5):
  rng = np.random.default_rng(0)
  return {
    (arm, env): rng.normal(size=(seeds, points)) for arm in arms for env in envs
  }


def _everything():
  """Runs for all figures, of two seeds; policies after two budgets."""
  envs = list(dict.fromkeys(e for suite in _SUITES.values() for e in suite))
  parts = [_curves(_random(_LEARNING, envs, seeds=2), pretraining_steps=100)]
  for steps in (10, 100):
    for stage, arms in (
      ('zero_shot', ('ngu', 'rnd', 'constant')),
      ('transfer', ('bt_ngu',)),
    ):
      runs = [
        fake.run(
          *(arm, env, seed),
          stage=stage,
          pretraining_steps=steps,
          frames_per_step=4,
        )
        for arm in arms
        for env in envs
        for seed in range(2)
      ]
      if (stage, steps) != ('transfer', 100):
        parts.append(dataset_lib.Dataset(tuple(runs), ()))
      scores = tuple(fake.final(run, steps + run.seed) for run in runs)
      parts.append(dataset_lib.Dataset((), scores))
  return fake.joined(*parts)


def _line(panel, arm):
  (line,) = [x for x in panel.lines if x.label == artifacts.TITLES[arm]]
  return line


def test_scores_are_means_between_the_lowest_and_the_highest_seed():
  values = _random(('r2d2', 'bt_ngu'), [fake.FAR, fake.NEAR])
  figure = _make('fig9', _curves(values))
  near, far = figure.panels
  assert (near.title, far.title) == ('Empty-8x8', 'FourRooms:fixed')
  assert [line.label for line in far.lines] == ['R2D2', 'R2D2 + BT(NGU)']
  line = _line(far, 'bt_ngu')
  seeds = values['bt_ngu', fake.FAR]
  np.testing.assert_array_equal(line.frames, [0, 1_000, 2_000, 3_000, 4_000])
  np.testing.assert_allclose(line.values, np.mean(seeds, axis=0))
  np.testing.assert_array_equal(line.low, np.min(seeds, axis=0))
  np.testing.assert_array_equal(line.high, np.max(seeds, axis=0))
  assert not figure.is_empty


def test_a_single_seed_and_figure_10_have_no_bands():
  one = _make('fig9', _curves(_random(['r2d2'], [fake.FAR], seeds=1)))
  assert one.panels[1].lines[0].low is None
  many = _make('fig10', _curves(_random(['r2d2'], [fake.FAR])))
  assert many.panels[1].lines[0].low is None
  assert 'bands' not in many.caption


def test_medians_are_those_of_normalized_means_with_intervals():
  values = _random(('r2d2', 'ez'), [fake.NEAR, fake.FAR])
  figure = _make('fig3', _curves(values))
  full, hard = figure.panels
  assert (full.title, hard.title) == ('full: 2 worlds', 'hard: 1 world')
  runs = np.stack(
    [_tenth(env, values['ez', env]) for env in (fake.NEAR, fake.FAR)], axis=1
  )  # [seeds, worlds, points]
  line = _line(full, 'ez')
  np.testing.assert_allclose(
    line.values, np.median(np.mean(runs, axis=0), axis=0)
  )
  for i in range(5):
    estimate = intervals.bootstrap(intervals.median, runs[..., i])
    assert (line.low[i], line.high[i]) == pytest.approx(estimate[1:])
  expected = _tenth(fake.FAR, np.mean(values['ez', fake.FAR], axis=0))
  np.testing.assert_allclose(_line(hard, 'ez').values, expected)


def test_medians_are_taken_over_worlds_that_all_arms_have():
  values = _random(('r2d2', 'ez'), [fake.NEAR, fake.FAR])
  del values['ez', fake.NEAR]
  figure = _make('fig3', _curves(values))
  full, hard = figure.panels
  assert full.title == 'full: 1 of 2 worlds'
  np.testing.assert_array_equal(
    _line(full, 'r2d2').values, _line(hard, 'r2d2').values
  )
  told = results.sentences(figure.problems)
  assert f'ez was not run on: {fake.NEAR}.' in told
  assert any('not in medians' in x and fake.NEAR in x for x in told)
  # Arms without any run at all leave the others alone.
  assert f'bt_ngu was not run on: {fake.NEAR}, {fake.FAR}.' in told


def test_uneven_seeds_are_cut_and_named():
  values = _random(['r2d2'], [fake.NEAR, fake.FAR])
  values['r2d2', fake.FAR] = values['r2d2', fake.FAR][:2]
  figure = _make('fig3', _curves(values))
  expected = np.median(
    [
      np.mean(_tenth(env, values['r2d2', env][:2]), axis=0)
      for env in (fake.NEAR, fake.FAR)
    ],
    axis=0,
  )
  np.testing.assert_allclose(figure.panels[0].lines[0].values, expected)
  (told,) = [x for x in results.sentences(figure.problems) if 'seeds' in x]
  assert 'first 2 seeds' in told and told.endswith(f': {fake.FAR}.')
  assert 'seeds of each world: 2;' in figure.caption


def test_runs_that_are_not_done_count_only_where_none_is():
  far = _curves(_random(['r2d2'], [fake.FAR], seeds=2))
  failed = far.runs[1]._replace(status=dataset_lib.FAILED, exit_code=1)
  near = _curves(_random(['r2d2'], [fake.NEAR], seeds=1))
  running = near.runs[0]._replace(status=dataset_lib.RUNNING)
  waiting = fake.run('ez', fake.NEAR, 0, status=dataset_lib.WAITING)
  half = tuple(s for s in near.scores if s.actor_steps <= fake.STEPS // 2)
  data = dataset_lib.Dataset(
    (far.runs[0], failed, running, waiting), (*far.scores, *half)
  )
  figure = _make('fig9', data)
  near_panel, far_panel = figure.panels
  assert near_panel.lines[0].frames[-1] == 2_000
  assert far_panel.lines[0].frames[-1] == 4_000
  assert far_panel.lines[0].values.tolist() == [
    s.return_mean for s in far.scores if s.run_id == far.runs[0].run_id
  ]
  told = ' '.join(results.sentences(figure.problems))
  assert f'failed with exit code 1: {failed.run_id}' in told
  assert f'as it has come (running): {running.run_id}' in told
  assert f'not done (waiting): {waiting.run_id}' in told


def test_runs_meet_at_the_steps_of_the_one_with_the_fewest():
  few, many = fake.run('r2d2', fake.FAR, 0), fake.run('r2d2', fake.FAR, 1)
  data = dataset_lib.Dataset(
    (few, many),
    (*fake.curve(few, [0.0, 1.0, 2.0]), *fake.curve(many, np.arange(11.0))),
  )
  (line,) = _make('fig9', data).panels[1].lines
  np.testing.assert_array_equal(line.frames, [0, 500, 1_000])
  np.testing.assert_allclose(line.low, [0, 1, 2])
  np.testing.assert_allclose(line.high, [0, 5, 10])
  # Frames that only one of them has are not drawn.
  later = data._replace(
    scores=tuple(
      s for s in data.scores if s.run_id == few.run_id or s.actor_steps > 400
    )
  )
  (line,) = _make('fig9', later).panels[1].lines
  np.testing.assert_array_equal(line.frames, [500, 1_000])


def test_figure_8_shows_the_beginning():
  values = _random(['r2d2'], [fake.NEAR, fake.FAR], points=201)
  (line,) = _make('fig8', _curves(values)).panels[0].lines
  # 2 % of the budget: 80 of 4,000 frames.
  np.testing.assert_array_equal(line.frames, np.arange(5) * 20)
  values = _random(['r2d2'], [fake.NEAR, fake.FAR], points=11)
  (line,) = _make('fig8', _curves(values)).panels[0].lines
  np.testing.assert_array_equal(line.frames, [0, 400, 800])


def test_figure_4_shows_the_extra_action():
  run = fake.run('bt_ngu', fake.FAR, 0)
  shares = [0.5, float('nan'), 0.1]
  scores = fake.curve(run, [1.0, 2.0, 3.0], greedy_extra_share=shares)
  far, near = _make('fig4', dataset_lib.Dataset((run,), tuple(scores))).panels
  np.testing.assert_array_equal(far.lines[0].values, [0.5, 0.1])
  np.testing.assert_array_equal(far.lines[0].frames, [0, 1_000])
  assert near.lines == ()


def test_figure_5_has_the_policy_as_a_level():
  end, early = (
    fake.run('ngu', fake.FAR, 0, stage='zero_shot', pretraining_steps=steps)
    for steps in (100, 10)
  )
  data = fake.joined(
    _curves(_random(['r2d2'], [fake.FAR])),
    dataset_lib.Dataset(
      (end, early), (fake.final(end, 0.25), fake.final(early, 0.75))
    ),
  )
  figure = _make('fig5', data)
  (far,) = [p for p in figure.panels if p.title == 'FourRooms:fixed']
  assert far.levels == (panels.Level('NGU, zero-shot', 0.25),)
  assert [line.label for line in far.lines] == ['R2D2']
  assert len(figure.panels) == 6


def test_figure_2_has_a_point_for_each_budget():
  figure = _make('fig2', _everything())
  left, far, near = figure.panels
  assert figure.log_x and figure.xlabel == 'frames of pre-training'
  line = _line(left, 'ngu')
  np.testing.assert_array_equal(line.frames, [40, 400])
  # Scores are the steps plus the seed, 10 times, in one of two worlds plus 1.
  np.testing.assert_allclose(line.values, [105.5, 1_005.5])
  assert left.levels == ()  # The published medians are those of other games.
  after = _line(far, 'bt_ngu')
  np.testing.assert_allclose(after.frames, [40, 400])
  np.testing.assert_allclose(after.values, [10.5, 100.5])
  np.testing.assert_allclose(after.low, [10, 100])
  np.testing.assert_allclose(_line(near, 'ngu').high, [11, 101])


def test_figure_2_falls_back_on_evaluations_during_pretraining():
  runs = [
    fake.run(arm, game, 0, stage='pretraining')._replace(
      budget_steps=fake.STEPS
    )
    for arm in ('ngu', 'rnd')
    for game in artifacts.PAPER_SUITES['full']
  ]
  scores = [score for run in runs for score in fake.curve(run, [1.0, 2.0, 4.0])]
  data = dataset_lib.Dataset(tuple(runs), tuple(scores))
  figure = _make('fig2', data, artifacts.PAPER_SUITES)
  left = figure.panels[0]
  assert [line.label for line in left.lines] == [
    'NGU, zero-shot',
    'RND, zero-shot',
  ]
  np.testing.assert_allclose(left.lines[0].values, [10, 20, 40])
  assert np.isnan(left.lines[0].low).all()
  assert {level.label: level.value for level in left.levels} == {
    'VISR, 100k interactions': 6.81,
    'APT, 100k interactions': 33.41,
  }


@pytest.mark.parametrize('figure_id', figures.FIGURES)
def test_figures_are_written_with_their_points(figure_id, tmp_path):
  figure = _make(figure_id, _everything())
  assert all(panel.lines for panel in figure.panels)
  for part in ('Scale laptop;', 'seeds of each world: 2;', 'frames.'):
    assert part in figure.caption
  path = tmp_path / figure_id
  picture = figures.draw(path, figure, ('png', 'csv'))
  assert len(picture.legends) == 1
  with path.with_suffix('.csv').open(newline='') as file:
    rows = list(csv.DictReader(file))
  points = sum(len(line.frames) for p in figure.panels for line in p.lines)
  assert len([row for row in rows if row['frames']]) == points > 0
  assert sorted(x.name for x in tmp_path.iterdir()) == [
    f'{figure_id}.csv',
    f'{figure_id}.png',
  ]


@pytest.mark.parametrize('figure_id', figures.FIGURES)
@pytest.mark.parametrize('suites', [_SUITES, {}], ids=['worlds', 'no worlds'])
def test_a_figure_without_runs_says_so_and_draws_nothing(
  figure_id, suites, tmp_path
):
  waiting = fake.run('bt_ngu', fake.FAR, 0, status=dataset_lib.WAITING)
  for data in (
    dataset_lib.Dataset((), ()),
    dataset_lib.Dataset((waiting,), ()),
  ):
    (written,) = figures.render(figure_id, data, suites, tmp_path)
    assert written == tmp_path / f'{figure_id}.txt'
    assert 'Nothing is drawn' in written.read_text()
    if not suites:
      assert 'the scale has no worlds for' in written.read_text()
  assert [x.suffix for x in tmp_path.iterdir()] == ['.txt']


def test_a_rendered_figure_has_its_caption_beside_it(tmp_path):
  data = _curves(_random(['r2d2'], [fake.NEAR, fake.FAR]))
  written = figures.render('fig3', data, _SUITES, tmp_path / 'new', ('png',))
  assert [path.name for path in written] == ['fig3.png', 'fig3.txt']
  assert written[0].read_bytes().startswith(b'\x89PNG')
  assert 'bt_rnd was not run on' in written[1].read_text()
  assert len(list((tmp_path / 'new').iterdir())) == 2


def test_figure_7_lists_the_parameters(tmp_path):
  written = figures.render('fig7', dataset_lib.Dataset((), ()), {}, tmp_path)
  assert [path.name for path in written] == ['fig7.csv', 'fig7.txt']
  rows = list(csv.DictReader(written[0].read_text().splitlines()))
  *each, total = rows
  # The paper's network on Atari: 18 actions and the extra one.
  assert total['numbers'] == '4357812'
  assert sum(int(row['numbers']) for row in each) == 4_357_812
  assert {
    'module': 'lstm/linear',
    'parameter': 'w',
    'shape': '1043 x 2048',
    'numbers': str(1_043 * 2_048),
  } in each
  assert '4,357,812' in written[1].read_text().splitlines()[-1]
  assert len(network_table.parameters(num_extra_actions=0)) == len(each)


def test_below_a_picture_stands_how_many_are_missing():
  waiting = [
    fake.run('ez', env, 0, status=dataset_lib.WAITING)
    for env in (fake.NEAR, fake.FAR)
  ]
  data = fake.joined(
    _curves(_random(['r2d2'], [fake.NEAR, fake.FAR])),
    dataset_lib.Dataset(tuple(waiting), ()),
  )
  picture = figures.draw('', _make('fig9', data))
  (below,) = [x for x in picture.texts if 'Scale laptop' in x.get_text()]
  text = ' '.join(below.get_text().split())
  assert text.endswith(
    'Not complete: not done (waiting): 2; bt_ngu was not run on: 2; '
    'bt_rnd was not run on: 2.'
  )


def test_57_worlds_stand_in_rows_of_6():
  games = artifacts.PAPER_SUITES['full']
  data = _curves({('r2d2', games[0]): np.ones((1, 2))})
  figure = _make('fig9', data, artifacts.PAPER_SUITES)
  assert (len(figure.panels), figure.columns) == (57, 6)
  assert [bool(panel.lines) for panel in figure.panels] == [True] + [False] * 56
  assert _make('fig11', data, artifacts.PAPER_SUITES).columns == 4


def test_what_cannot_be_drawn_is_refused():
  nothing = dataset_lib.Dataset((), ())
  with pytest.raises(ValueError, match="figure_id='table3' is not a figure"):
    figures.make('table3', nothing, _SUITES)
  one = fake.run('r2d2', fake.FAR, 0)
  two = dataset_lib.Dataset((one, one._replace(scale='gpu')), ())
  with pytest.raises(ValueError, match='scales gpu, laptop'):
    figures.make('fig3', two, _SUITES)
