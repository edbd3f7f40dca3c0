"""Tests panels: lines, legend and points."""

import numpy as np
import pytest

from bt_acme.evaluation import curve_panels

_FRAMES = np.array([0.0, 4e5, 8e5])


def _line(label='BT', band=True):
  line = curve_panels.Line(label, _FRAMES, np.array([0.1, 1 / 3, 2e9]))
  if not band:
    return line
  low, high = np.array([[np.nan, 0.25, 1e9], [np.nan, 0.5, 3e9]])
  return line._replace(low=low, high=high)


def _grid(count):
  return [
    curve_panels.Panel(f'game {i}', '', (_line('R2D2'), _line('BT', i == 0)))
    for i in range(count)
  ]


def test_points():
  text = curve_panels.points(
    [
      curve_panels.Panel('pong', 'score', (_line(),), {'human': 14.6}),
      curve_panels.Panel('hero', 'score', (_line('R2D2', band=False),)),
    ]
  )
  assert text.splitlines() == [
    ','.join(curve_panels.COLUMNS),
    'pong,BT,0,0.1,,',
    'pong,BT,400000,0.333333333333,0.25,0.5',
    'pong,BT,800000,2000000000,1000000000,3000000000',
    'pong,human,,14.6,,',
    'hero,R2D2,0,0.1,,',
    'hero,R2D2,400000,0.333333333333,,',
    'hero,R2D2,800000,2000000000,,',
  ]


@pytest.mark.parametrize('count, rows', [(1, 1), (5, 2), (14, 5)])
def test_rows_of_panels_with_a_common_legend(count, rows):
  figure = curve_panels.draw('', _grid(count), columns=3, caption='two seeds')
  shown = [axes for axes in figure.axes if axes.axison]
  assert [axes.get_title() for axes in shown] == [
    f'game {i}' for i in range(count)
  ]
  assert len(figure.axes) == rows * min(count, 3)
  (legend,) = figure.legends
  assert [text.get_text() for text in legend.get_texts()] == ['R2D2', 'BT']
  assert all(axes.get_legend() is None for axes in shown)
  # A label has the same color in all panels.
  colors = {tuple(line.get_color() for line in axes.lines) for axes in shown}
  assert colors == {('C0', 'C1')}
  assert 'two seeds' in [text.get_text() for text in figure.texts]


def test_the_lowest_panel_of_each_column_has_tick_labels():
  figure = curve_panels.draw('', _grid(5), columns=3)
  figure.draw_without_rendering()
  shown = [
    axes.xaxis.get_tick_params()['labelbottom'] for axes in figure.axes[:5]
  ]
  assert shown == [False, False, True, True, True]
  labels = [label.get_text() for label in figure.axes[4].get_xticklabels()]
  assert '0' in labels and '500k' in labels


def test_a_logarithmic_axis_starts_at_0():
  line = curve_panels.Line('NGU', np.array([0, 1e5, 1.6e10]), np.arange(3.0))
  panel = curve_panels.Panel('zero-shot', 'median', (line,))
  figure = curve_panels.draw('', [panel], columns=1, log_x=True)
  (axes,) = figure.axes
  figure.draw_without_rendering()
  place = axes.transData.transform
  zero, small, large = (place((frames, 0))[0] for frames in line.frames)
  assert axes.get_xlim()[0] == 0
  # Five decades take most of the axis, and 0 is visible.
  assert zero < small < zero + 0.2 * (large - zero)
  labels = [label.get_text() for label in axes.get_xticklabels()]
  assert labels[0] == '0' and '100k' in labels


def test_levels_are_dashed_and_empty_panels_have_a_text():
  figure = curve_panels.draw(
    '',
    [
      curve_panels.Panel('left', 'median', (_line(),), {'VISR': 6.81}),
      curve_panels.Panel('right', 'score', ()),
    ],
    columns=2,
  )
  left, right = figure.axes
  assert [line.get_linestyle() for line in left.lines] == ['-', '--']
  assert left.lines[1].get_ydata()[0] == 6.81
  assert [text.get_text() for text in right.texts] == ['not run']
  assert (left.get_ylabel(), right.get_ylabel()) == ('median', 'score')
  (legend,) = figure.legends
  assert [text.get_text() for text in legend.get_texts()] == ['BT', 'VISR']


def test_files_are_written_in_three_formats_and_reproducible(tmp_path):
  written = []
  for folder in ('one', 'other'):
    path = tmp_path / folder / 'fig9'
    curve_panels.draw(path, _grid(2), columns=2, caption='two seeds')
    written.append(
      [path.with_suffix(suffix).read_bytes() for suffix in ('.png', '.pdf')]
    )
    assert path.with_suffix('.csv').read_text() == curve_panels.points(_grid(2))
    assert len(list(path.parent.iterdir())) == 3
  (png, pdf), other = written
  assert png.startswith(b'\x89PNG') and pdf.startswith(b'%PDF')
  assert [png, pdf] == other
