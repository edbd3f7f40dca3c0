"""Small multiples: panels of curves with bands and a common legend.

A figure is written as PNG and PDF, and all its points as CSV, from which it can
be redrawn. pyplot is not used, because users choose its backend.
"""

import itertools
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib import ticker

from bt_acme import files
from bt_acme.evaluation import plots, tables

FORMATS = ('csv', 'png', 'pdf')
COLUMNS = ('panel', 'line', 'frames', 'value', 'low', 'high')  # CSV header.

_DPI = 130
_LETTER = 0.0078  # Width of a letter in inches, per point of font size.
_FEW_POINTS = 12  # Lines with at most this many points have markers.
_UNITS = ((1e9, 'B'), (1e6, 'M'), (1e3, 'k'))


class Line(NamedTuple):
  """A curve and its band.

  Attributes:
    label: the label in the legend; lines with the same label share a color.
    frames: the x coordinates, float [N], increasing.
    values: the y coordinates, float [N].
    low: the lower end of the band, float [N], or NaN for a line without a band;
      NaN at points without a band.
    high: the upper end of the band, like `low`.
  """

  label: str
  frames: np.ndarray
  values: np.ndarray
  low: Any = np.nan
  high: Any = np.nan


class Panel(NamedTuple):
  """A pair of axes, which show the text 'not run' if there are no lines.

  Attributes:
    title: the title.
    ylabel: the label of the vertical axis.
    lines: the curves.
    levels: reference values by label, drawn as dashed horizontal lines.
  """

  title: str
  ylabel: str
  lines: tuple[Line, ...]
  levels: Mapping[str, float] = {}


class _Style(NamedTuple):
  """Panel size in inches, font size in points, title width in letters."""

  width: float
  height: float
  font: float
  title: int


_LARGE = _Style(3.4, 2.5, 8.5, 42)
_SMALL = _Style(2.0, 1.45, 6.5, 30)
_MOST_LARGE = 12  # Larger figures use small panels.


def draw(
  path: files.PathLike,
  panels: Sequence[Panel],
  *,
  columns: int,
  xlabel: str = 'frames',
  log_x: bool = False,
  caption: str = '',
  formats: Sequence[str] = FORMATS,
) -> plots.Picture:
  """Draws panels row by row, with the same range of frames.

  Args:
    path: the path of the files PATH.png, PATH.pdf and PATH.csv (all points);
      empty to write no files.
    panels: the panels, at least one.
    columns: the number of panels per row.
    xlabel: the label of the horizontal axis.
    log_x: whether the horizontal axis is logarithmic; 0 is then at its left
      end.
    caption: a text below the panels; empty for none.
    formats: the formats to write, out of `FORMATS`.

  Returns:
    The figure.
  """
  columns = min(columns, len(panels))
  rows = -(-len(panels) // columns)
  style = _LARGE if len(panels) <= _MOST_LARGE else _SMALL
  figure = plots.Picture(
    figsize=(columns * style.width + 0.3, rows * style.height + 0.7),
    layout='constrained',
  )
  all_axes = figure.subplots(rows, columns, sharex=True, squeeze=False)
  colors = _colors(panels)
  one_ylabel = len({panel.ylabel for panel in panels}) == 1
  for axes, panel in itertools.zip_longest(all_axes.flat, panels):
    if panel is None:
      axes.set_axis_off()
      continue
    _draw_panel(axes, panel, colors, style)
    if not one_ylabel:
      axes.set_ylabel(panel.ylabel, fontsize=style.font)
  for axes in all_axes.flat[len(panels) - columns : len(panels)]:
    axes.tick_params(labelbottom=True)
  _scale_frames(all_axes[0, 0], panels, log_x)
  if one_ylabel:
    figure.supylabel(panels[0].ylabel, fontsize=style.font + 1)
  figure.supxlabel(xlabel, fontsize=style.font + 1)
  _label(figure, caption, style)
  if path and 'csv' in formats:
    files.write_text(f'{path}.csv', points(panels))
  # Without a date, equal points give equal files.
  for suffix, metadata in (('png', {}), ('pdf', {'CreationDate': None})):
    if path and suffix in formats:
      with files.new_file(f'{path}.{suffix}') as file:
        figure.savefig(
          file, format=suffix, bbox_inches='tight', dpi=_DPI, metadata=metadata
        )
  return figure


def points(panels: Sequence[Panel]) -> str:
  """Returns all points of the panels as CSV; levels have no frames."""
  rows: list[tuple[Any, ...]] = []
  for panel in panels:
    for line in panel.lines:
      columns = np.broadcast_arrays(*line[1:])
      rows += (
        (panel.title, line.label, *x) for x in zip(*columns, strict=True)
      )
    rows += (
      (panel.title, label, '', value, '', '')
      for label, value in panel.levels.items()
    )
  cells = [dict(zip(COLUMNS, row, strict=True)) for row in rows]
  return tables.csv_text(cells, digits=12, header=COLUMNS)


def with_unit(value: float) -> str:
  """Formats a number with a unit, such as 2.5M for 2500000."""
  for size, unit in _UNITS:
    if abs(value) >= size:
      return f'{value / size:.6g}{unit}'
  return f'{value:.6g}'


def _colors(panels: Sequence[Panel]) -> dict[str, str]:
  """Assigns a color to each label: lines first, in the order of the legend."""
  labels = [line.label for panel in panels for line in panel.lines]
  labels += [label for panel in panels for label in panel.levels]
  return {label: f'C{i % 10}' for i, label in enumerate(dict.fromkeys(labels))}


def _draw_panel(
  axes: Any, panel: Panel, colors: Mapping[str, str], style: _Style
) -> None:
  for line in panel.lines:
    color = colors[line.label]
    axes.plot(
      line.frames,
      line.values,
      color=color,
      label=line.label,
      linewidth=1.3,
      marker='o' if len(line.frames) <= _FEW_POINTS else '',
      markersize=3,
    )
    axes.fill_between(
      line.frames, line.low, line.high, color=color, alpha=0.2, linewidth=0
    )
  for label, value in panel.levels.items():
    axes.axhline(
      value, color=colors[label], label=label, linestyle='--', linewidth=1.1
    )
  axes.set_title(
    textwrap.fill(panel.title, style.title), fontsize=style.font + 0.5
  )
  axes.tick_params(labelsize=style.font - 0.5)
  axes.yaxis.set_major_locator(_few_ticks())
  axes.yaxis.set_major_formatter(lambda y, _: with_unit(y))
  axes.grid(alpha=0.3)
  axes.spines[['top', 'right']].set_visible(False)
  if not panel.lines:
    axes.set_yticks([])
    middle = {'ha': 'center', 'va': 'center', 'transform': axes.transAxes}
    axes.text(0.5, 0.5, 'not run', color='0.5', fontsize=style.font, **middle)


def _scale_frames(axes: Any, panels: Sequence[Panel], log_x: bool) -> None:
  """Sets the horizontal axis, which all panels share."""
  frames = np.concatenate(
    [line.frames for panel in panels for line in panel.lines] or [np.zeros(1)]
  )
  positive = frames[frames > 0]
  if log_x and len(positive):
    axes.set_xscale('symlog', linthresh=positive.min(), linscale=0.5)
    powers = np.log10(positive)
    decades = np.arange(np.floor(powers.min()), np.ceil(powers.max()) + 1)
    step = -(-len(decades) // 5)
    axes.set_xticks([0.0, *(10.0 ** decades[::-step][::-1])])
    axes.set_xticks([], minor=True)
  else:
    axes.xaxis.set_major_locator(_few_ticks())
  axes.xaxis.set_major_formatter(lambda x, _: with_unit(x))
  largest = max(frames.max(), 1e-9)
  axes.set_xlim(0, largest * (1.3 if log_x else 1.03))


def _few_ticks() -> ticker.Locator:
  return ticker.MaxNLocator(4, steps=[1, 2, 2.5, 5, 10])


def _label(figure: plots.Picture, caption: str, style: _Style) -> None:
  """Adds a legend for all panels, and the caption."""
  width = figure.get_figwidth()
  handles: dict[str, Any] = {}
  for axes in figure.axes:
    for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
      handles.setdefault(label, handle)
  if handles:
    longest = max(map(len, handles))
    most = int(width / (0.6 + longest * style.font * _LETTER))
    columns = min(max(most, 1), len(handles))
    # Further rows of the legend must not make the panels smaller.
    rows = -(-len(handles) // columns)
    figure.set_figheight(figure.get_figheight() + (rows - 1) * style.font / 45)
    figure.legend(
      handles.values(),
      handles,
      loc='outside upper center',
      ncols=columns,
      frameon=False,
      fontsize=style.font + 0.5,
    )
  if caption:
    # Saved files include texts below the figure.
    letters = int(width / (style.font * _LETTER))
    figure.text(
      0.5,
      -0.1 / figure.get_figheight(),
      '\n'.join(textwrap.wrap(caption, letters, break_on_hyphens=False)),
      ha='center',
      va='top',
      fontsize=style.font,
      color='0.25',
    )
