"""Learning curves, shares and heat maps, as figures and PNG files.

pyplot is not used, because users choose its backend. A notebook displays a
figure that is the result of a cell.
"""

import io
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import figure as figure_lib

from bt_acme.config import checks

Curve = tuple[np.ndarray, np.ndarray]  # actor steps, values
_DPI = 130
_POINTS = 200  # Number of actor steps to which curves are interpolated.
_MARGIN = 2  # Width in cells of the margin around visited cells.


class Picture(figure_lib.Figure):
  """A figure that notebooks display."""

  def _repr_png_(self) -> bytes:
    buffer = io.BytesIO()
    self.savefig(buffer, format='png', dpi=_DPI, bbox_inches='tight')
    return buffer.getvalue()


def smoothed_curve(
  columns: Mapping[str, np.ndarray], name: str, *, window: int
) -> Curve:
  """Averages the last `window` episodes at each actor step.

  The curve starts after a fifth of a window, because the mean of the first few
  episodes is mostly noise. A shorter log gives a single point.

  Args:
    columns: the columns of a log, as `logs.read_log` returns them.
    name: the name of the column to average.
    window: the number of episodes to average.
  """
  keep = ~np.isnan(columns[name])
  steps, values = columns['actor_steps'][keep], columns[name][keep]
  sums = np.concatenate([[0.0], np.cumsum(values)])
  first = max(min(window // 5, len(values)), 1)
  ends = np.arange(first, len(values) + 1)
  starts = np.maximum(ends - window, 0)
  return steps[ends - 1], (sums[ends] - sums[starts]) / (ends - starts)


def learning_curves(
  path: str, curves: Mapping[str, Sequence[Curve]], *, title: str, ylabel: str
) -> Picture:
  """Draws learning curves over actor steps, with all seeds.

  Each seed is a thin line that ends with a dot, their mean is a thick line, and
  a band spans the range from the lowest to the highest seed.

  Args:
    path: the path of the PNG; empty to write none.
    curves: a curve per seed, by label.
    title: the title of the plot.
    ylabel: the label of the vertical axis.

  Returns:
    The figure.
  """
  figure, axes = _curve_axes(title, ylabel)
  for i, (label, seeds) in enumerate(curves.items()):
    color = f'C{i}'
    thin = {'color': color, 'linewidth': 0.6, 'alpha': 0.7}
    for steps, values in seeds:
      # Without the dot, a curve of a single point would be invisible.
      axes.plot(steps, values, **thin, marker='.', markevery=[-1])
    steps, values = common_steps(seeds)
    axes.fill_between(
      steps, values.min(axis=0), values.max(axis=0), color=color, alpha=0.2
    )
    mean = values.mean(axis=0)
    axes.plot(steps, mean, color=color, label=_visible(label), linewidth=2.2)
  axes.grid(alpha=0.3)
  axes.legend(frameon=False)
  axes.spines[['top', 'right']].set_visible(False)
  return _save(figure, path)


def stacked_shares(
  path: str, shares: Mapping[str, Curve], *, title: str
) -> Picture:
  """Draws shares of flights, which sum to 1, over actor steps, stacked.

  Args:
    path: the path of the PNG; empty to write none.
    shares: the curve of each share, by label; all have the same actor steps.
    title: the title of the plot.

  Returns:
    The figure.
  """
  figure, axes = _curve_axes(title, 'share of flights')
  curves = list(shares.values())
  axes.stackplot(
    curves[0][0],
    [values for _, values in curves],
    labels=[_visible(label) for label in shares],
    colors=[f'C{i}' for i in range(len(curves))],
    alpha=0.85,
  )
  axes.margins(x=0)
  axes.set_ylim(0, 1)
  axes.legend(
    frameon=False, loc='upper left', bbox_to_anchor=(1.0, 1.0), reverse=True
  )
  axes.spines[['top', 'right']].set_visible(False)
  return _save(figure, path)


def _visible(label: str) -> str:
  """Returns a label that a legend shows; it omits those that start with `_`."""
  return f' {label}' if str(label).startswith('_') else label


def _curve_axes(title: str, ylabel: str) -> tuple[Picture, Any]:
  """Returns a figure and its axes, for curves over actor steps."""
  figure = Picture(figsize=(7, 4.2))
  axes = figure.subplots()
  axes.set(xlabel='actor steps', ylabel=ylabel, title=title)
  return figure, axes


def means_by_step(scores: Curve) -> Curve:
  """Averages the scores at each actor step.

  Args:
    scores: actor steps, possibly with duplicates, and scores.

  Returns:
    The distinct actor steps in order, and the mean score at each.
  """
  steps, index = np.unique(scores[0], return_inverse=True)
  return steps, np.bincount(index, scores[1]) / np.bincount(index)


def common_steps(curves: Sequence[Curve]) -> Curve:
  """Interpolates curves to common actor steps within their shared range.

  Args:
    curves: the curves, each with its own actor steps.

  Returns:
    Actor steps [N], and values [curves, N].

  Raises:
    ValueError: if the curves share no range.
  """
  start = max(steps[0] for steps, _ in curves)
  end = min(steps[-1] for steps, _ in curves)
  checks.require(
    start <= end,
    f'a curve starts at actor step {start:,.0f}, after another ends at '
    f'{end:,.0f}. Leave out the shorter run, or lower window.',
  )
  shared = np.linspace(start, end, _POINTS)
  return shared, np.stack([np.interp(shared, *curve) for curve in curves])


def heat_maps(
  path: str,
  visits: Mapping[str, np.ndarray],
  backgrounds: Mapping[str, np.ndarray],
  *,
  title: str,
  panel_size: tuple[float, float] = (4.2, 4.6),
  cropped: bool = True,
) -> Picture:
  """Draws a heat map of visited cells for each policy.

  Args:
    path: the path of the PNG; empty to write none.
    visits: counts [rows, columns] by label, over equal numbers of episodes.
    backgrounds: the empty grid by label, uint8 RGB [rows * tile, columns *
      tile, 3].
    title: the title of the figure.
    panel_size: the width and height of a map, in inches.
    cropped: whether to show only the visited part of the grid.

  Returns:
    The figure.
  """
  width, height = panel_size
  figure = Picture(figsize=(width * len(visits) + 0.8, height))
  (all_axes,) = figure.subplots(1, len(visits), squeeze=False)
  largest = max(np.log10(1 + counts.max()) for counts in visits.values())
  total = sum(visits.values())
  x_limits, y_limits = _limits(total if cropped else np.ones_like(total))
  for axes, (label, counts) in zip(all_axes, visits.items(), strict=True):
    extent = (-0.5, counts.shape[1] - 0.5, counts.shape[0] - 0.5, -0.5)
    axes.imshow(backgrounds[label], extent=extent, alpha=0.55)
    shown = np.ma.masked_equal(np.log10(1 + counts), 0)
    image = axes.imshow(shown, cmap='inferno', vmin=0, vmax=largest, alpha=0.85)
    axes.set(title=label, xticks=[], yticks=[], xlim=x_limits, ylim=y_limits)
  figure.suptitle(title, y=0.97)
  figure.colorbar(
    image, ax=all_axes.tolist(), label='log10(1 + visits)', shrink=0.8
  )
  return _save(figure, path)


def _limits(counts: Any) -> tuple[tuple[float, float], tuple[float, float]]:
  """Returns axis limits around the visited cells; the y axis points down."""
  rows, columns = np.nonzero(counts)
  limits = []
  for indices, size in zip((columns, rows), counts.shape[::-1], strict=True):
    first = max(indices.min(initial=size) - _MARGIN, 0)
    end = min(indices.max(initial=0) + _MARGIN + 1, size)
    limits.append((first - 0.5, end - 0.5))
  (left, right), (top, bottom) = limits
  return (left, right), (bottom, top)


def _save(figure: Picture, path: str) -> Picture:
  """Writes a figure to a file, unless the path is empty, and returns it."""
  if path:
    pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=_DPI, bbox_inches='tight')
  return figure
