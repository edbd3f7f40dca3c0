"""Tests of tables, with the paper's numbers and with incomplete runs."""

import csv
import io
import math

import numpy as np
import pytest

from experiments.paper import published, table_formats
from experiments.paper.normalized_scores import normalize
from tests.experiments.paper import fake_results as fake
from tests.experiments.paper.fake_results import FAR, NEAR, STEPS, SUITES

_SOME = ('pong', 'hero', 'venture')


def _published(artifact):
  """Makes a table from the paper's scores of games."""
  return fake.table(artifact, published.data(artifact))


def _cells(table):
  return [cell for cells in table.rows.values() for cell in cells]


@pytest.mark.parametrize(
  'artifact, numbers',
  [
    *(('table3', 24), ('table4', 36), ('table5', 35)),
    *(('table6', 228), ('table7', 171), ('table8', 171), ('table10', 30)),
  ],
)
def test_recomputed_numbers_match_the_paper(artifact, numbers):
  cells = _cells(_published(artifact))
  both = [c for c in cells if c.paper and not c.is_missing]
  assert len(both) == numbers
  for cell in both:
    assert table_formats.ours(cell) == cell.paper
    assert cell.comparable


def test_numbers_without_scores_of_games_show_only_the_paper():
  table = _published('table3')
  title, early = next(iter(table.rows.items()))
  assert title == 'R2D2, 20% of the budget'
  assert table_formats.ours(early[0]) == '–'
  assert table_formats.paper(early[0]) == '(229.75)'
  table = _published('table2')
  assert len(table.rows) == 23 + 3
  assert table.rows['NGU, zero-shot'][-1].paper == '27'


def test_table1_compares_the_defaults_with_the_paper():
  table = fake.table('table1', fake.NOTHING)
  verdicts = {title: cells[-1].text for title, cells in table.rows.items()}
  assert verdicts['Learning rate'] == 'yes'
  assert verdicts['epsilon_levy distribution, lower end'] == ''
  # The preset `paper` determines the number of actors.
  others = {t for t, verdict in verdicts.items() if verdict not in ('yes', '')}
  assert others <= {'Number of actors'}


_RETURNS = {
  ('r2d2', NEAR): [0.9, 0.8, 0.94],
  ('r2d2', FAR): [0.0, 0.0, 0.1],
  ('bt_ngu', NEAR): [0.9, 0.9, 0.9],
  ('bt_ngu', FAR): [0.5, 0.7, 0.6],
}


def _mean(returns):
  """Returns the mean over environments of normalized means over seeds."""
  return np.mean([normalize(env, np.mean(returns[env])) for env in returns])


def test_small_environments_are_normalized_and_not_comparable():
  table = fake.table('table4', fake.finals(_RETURNS), SUITES)
  cell = table.rows['R2D2'][1]
  expected = _mean({env: _RETURNS['r2d2', env] for env in (NEAR, FAR)})
  assert cell.value == pytest.approx(expected)
  assert cell.low < cell.value < cell.high
  assert (cell.seeds, cell.games) == (3, 2)
  assert not cell.comparable
  assert table_formats.paper(cell) == '(1742.92)'
  missing = table.rows['R2D2, partial init'][0]
  assert missing.is_missing and missing.paper == '668.80'
  assert f'r2d2_partial was not run on: {NEAR}, {FAR}.' in table.notes
  for part in (
    *('Scale laptop', 'seeds per environment: 3', '95% bootstrap intervals'),
    "2 (full), 1 (hard), not the paper's.",
    "trained 1k frames (1/5,000,000 of the paper's).",
  ):
    assert part in table.caption
  rows = list(csv.DictReader(io.StringIO(table_formats.FORMATS['csv'](table))))
  assert len(rows) == len(_cells(table))
  first = {'artifact': 'table4', 'row': 'R2D2', 'paper': '1742.92'}
  assert first.items() <= rows[1].items() and rows[1]['comparable'] == '0'
  assert float(rows[1]['low']) < cell.value < float(rows[1]['high'])


@pytest.mark.parametrize(
  'status, note',
  [
    ('failed', 'Failed with exit code 1: '),
    ('running', 'Not done (running): '),
    ('done', 'No evaluation near the required step: '),
  ],
)
def test_a_run_without_a_score_is_reported_and_the_rest_shown(status, note):
  runs, scores = map(list, fake.finals(_RETURNS))
  name = scores.pop(4).run_id  # A seed of R2D2 in the far environment.
  runs[4] = runs[4]._replace(status=status, exit_code=1)
  table = fake.table('table4', fake.data(runs, scores), SUITES)
  assert f'{note}{name}.' in table.notes
  cell = table.rows['R2D2'][1]
  assert (cell.seeds, cell.games) == (2, 2)
  # Only the first two seeds in the near environment count.
  expected = _mean({NEAR: [0.9, 0.8], FAR: [0.0, 0.1]})
  assert cell.value == pytest.approx(expected)
  assert name in cell.note
  assert any('only 2 seeds' in n and FAR in n for n in table.notes)
  assert table.rows['R2D2 + BT(NGU)'][1].seeds == 3


def test_the_nearest_evaluation_is_shown():
  points = [0.0, 0.2, 0.4, 0.4, 0.4, 0.5]
  runs, (*scores, last) = fake.curves({('r2d2', FAR): [points, points]})
  # The last evaluation of seed 1 is too far from the end of its budget.
  last = last._replace(actor_steps=int(0.97 * STEPS))
  table = fake.table('table3', fake.data(runs, [*scores, last]), SUITES)
  hard = table.columns.index('hard: mean')
  early, end = (
    table.rows[f'R2D2, {percent}% of the budget'][hard] for percent in (20, 100)
  )
  assert early.value == pytest.approx(normalize(FAR, 0.2)) and early.seeds == 2
  assert end.value == pytest.approx(normalize(FAR, 0.5)) and end.seeds == 1
  assert math.isnan(end.low)


@pytest.mark.parametrize(
  'larger', [{'pretraining_steps': 20}, {'budget_steps': 2 * STEPS}]
)
def test_the_run_with_the_larger_budget_counts(larger):
  less = fake.run('bt_ngu', FAR, 0, pretraining_steps=10)
  more = less._replace(run_id='more', **larger)
  scores = (fake.final(less, 0.1), fake.final(more, 0.4))
  for runs in ((less, more), (more, less)):
    table = fake.table('table6', fake.data(runs, scores), SUITES)
    cell = table.rows[FAR][2]
    assert (cell.value, cell.seeds) == (0.4, 1)


def test_tasks_correspond_to_the_papers_by_order():
  tasks = ('a', 'a:easy', 'a:hard', 'b', 'b:easy', 'b:hard')
  data = fake.finals({('bt_ngu', 'b:hard'): [0.25, 0.5]})
  table = fake.table('table10', data, {'tasks': tasks})
  cell = table.rows['b:hard'][-1]
  assert table_formats.ours(cell).startswith('0.38')
  assert table_formats.paper(cell) == '(3547 ± 122)'


@pytest.mark.parametrize(
  'fields', [{'budget_steps': 10}, {'scale': 'gpu'}, {'pretraining_steps': 10}]
)
def test_another_budget_or_scale_is_not_comparable(fields):
  data = published.data('table7')
  runs = (run._replace(**fields) for run in data.runs)
  changed = fake.data(runs, data.scores)
  for artifact in ('table7', 'table5'):
    table = fake.table(artifact, changed)
    assert not any(cell.comparable for cell in _cells(table))


def test_a_median_over_fewer_games_is_not_comparable():
  data = published.data('table5')
  runs = (r for r in data.runs if (r.arm, r.env) != ('r2d2', 'pong'))
  table = fake.table('table5', fake.data(runs, data.scores))
  cells = {title: row[0] for title, row in table.rows.items()}
  assert (cells['R2D2'].games, cells['R2D2'].comparable) == (56, False)
  assert table_formats.paper(cells['R2D2']) == '(490.12)'
  assert 'r2d2 was not run on: pong.' in table.notes
  # The medians of all algorithms have the same games.
  assert {cell.games for cell in cells.values()} == {56}


def test_a_suite_shows_all_algorithms_in_the_same_environments():
  data = published.data('table3')
  some = [r for r in data.runs if r.arm == 'r2d2' or r.env in _SOME]
  table = fake.table('table3', fake.data(some, data.scores))
  rows = {t: r[0] for t, r in table.rows.items() if r[0].games}
  assert len(rows) > 2 and {cell.games for cell in rows.values()} == {3}
  assert 'Environments: 3 of 57 (full)' in table.caption


def test_markdown_and_latex_have_all_rows_and_the_caption():
  table = _published('table10')
  markdown = table_formats.FORMATS['md'](table)
  assert '| hero:miners_hard | 2677; 2677 ± 23 |' in markdown
  assert table.caption in markdown
  latex = table_formats.FORMATS['tex'](table)
  assert r'hero:miners\_hard & 2677; 2677 $\pm$ 23 &' in latex
  assert latex.count(r'\\') == 1 + 6
  assert r'\begin{tabular}{lrrrrr}' in latex
  assert '–' not in latex and '%' not in latex.replace(r'\%', '')
  assert table_formats._escaped('10^-4') == r'10\textasciicircum{}-4'


def test_scores_of_environments_have_a_spread():
  table = fake.table('table6', fake.finals(_RETURNS), SUITES)
  cell = table.rows[FAR][0]
  assert cell.value == pytest.approx(0.1 / 3)
  # Deviations are -1/30, -1/30 and 2/30.
  assert cell.spread == pytest.approx(math.sqrt(6 / 3) / 30)
  assert table_formats.ours(cell) == '0.03 ± 0.05'
