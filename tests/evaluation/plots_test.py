"""Tests curves, shares and heat maps."""

import logging

import numpy as np
import pytest

from bt_acme.evaluation import logs, plots


def test_smoothed_curve_starts_after_a_fifth_of_the_window():
  returns = np.arange(30.0)
  returns[4] = np.nan  # A row without a return.
  columns = {'actor_steps': 100 * np.arange(30), 'return': returns}
  steps, means = plots.smoothed_curve(columns, 'return', window=10)
  kept = [x for x in range(30) if x != 4]
  np.testing.assert_array_equal(steps, [100 * x for x in kept[1:]])
  expected = [np.mean(kept[max(i - 10, 0) : i]) for i in range(2, 30)]
  np.testing.assert_allclose(means, expected)
  # Few episodes are one point.
  steps, means = plots.smoothed_curve(columns, 'return', window=200)
  assert steps.tolist() == [2_900] and means == [np.mean(kept)]


def test_curves_of_seeds_are_interpolated_in_their_common_range():
  seeds = [
    (np.array([0, 10, 20]), np.array([0.0, 1.0, 2.0])),
    (np.array([5, 25]), np.array([1.0, 3.0])),
  ]
  steps, values = plots.common_steps(seeds)
  assert values.shape == (2, len(steps))
  assert (steps[0], steps[-1]) == (5, 20)
  np.testing.assert_allclose(values[0], steps / 10)
  np.testing.assert_allclose(values[1], 0.5 + steps / 10)
  seeds.append((np.array([30, 40]), np.zeros(2)))
  with pytest.raises(ValueError, match='starts at actor step 30, after .* 20'):
    plots.common_steps(seeds)


def test_legends_show_all_labels():
  curves = {x: (np.arange(2.0), np.full(2, 0.5)) for x in ('_make', 'b')}
  shares = plots.stacked_shares('', curves, title='')
  seeds = {label: [curve] for label, curve in curves.items()}
  for figure in (shares, plots.learning_curves('', seeds, title='', ylabel='')):
    texts = figure.axes[0].get_legend().get_texts()
    assert {text.get_text().strip() for text in texts} == {'_make', 'b'}


def test_scores_of_the_same_actor_step_are_averaged():
  steps, means = plots.means_by_step(
    (np.array([20, 10, 20, 30]), np.array([1.0, 5.0, 4.0, 6.0]))
  )
  np.testing.assert_array_equal(steps, [10, 20, 30])
  np.testing.assert_array_equal(means, [5.0, 2.5, 6.0])


def test_heat_maps_are_cropped_to_visited_cells():
  counts = np.zeros((20, 30), int)
  counts[5, 7:12] = 3
  visits = {'some': counts, 'none': np.zeros_like(counts)}
  grids = {x: np.full((40, 60, 3), i, np.uint8) for i, x in enumerate(visits)}
  figure = plots.heat_maps('', visits, grids, title='Visits')
  backgrounds = [
    axes.images[0].get_array()[0, 0, 0] for axes in figure.axes[:2]
  ]
  assert backgrounds == [0, 1]
  assert [axes.get_title() for axes in figure.axes[:2]] == ['some', 'none']
  assert figure.axes[1].get_xlim() == (4.5, 13.5)
  assert figure.axes[1].get_ylim() == (7.5, 2.5)


def test_read_log(tmp_path):
  path = tmp_path / 'logs.csv'
  path.write_text('actor_steps,loss\n1,0.5\n2,\n')
  columns = logs.read_log(str(path))
  np.testing.assert_array_equal(columns['actor_steps'], [1, 2])
  np.testing.assert_array_equal(columns['loss'], [0.5, np.nan])
  path.write_text('')
  assert logs.read_log(str(path)) == {} and logs.read_rows(path) == []
  path.unlink()
  assert logs.read_rows(path) == []


def test_incomplete_and_damaged_lines_of_a_log_are_omitted(tmp_path, caplog):
  path = logs.path_of(tmp_path, 'actor')
  path.parent.mkdir(parents=True)
  # A power failure may leave zeros.
  damaged = ['2', '3,x', '4,5,6', '\0\0\0']
  lines = ['actor_steps,life', '1,0', *damaged, '7,', '8,9']
  path.write_text('\n'.join(lines))
  with caplog.at_level(logging.WARNING, 'absl'):
    rows = logs.read_rows(path)
  assert rows == [{'actor_steps': 1, 'session': 0}, {'actor_steps': 7}]
  assert f'Damaged rows omitted: 4 of {path}' in caplog.text
  path.write_text('\n'.join([*lines[:2], *damaged, '']))
  assert logs.last(tmp_path, 'actor', 'actor_steps') == 4
  assert logs.last(tmp_path, 'actor', 'session') == 5
