"""Learning curves and heat maps of visited cells, as PNG files."""

import csv
import pathlib
from typing import Any, Dict, Mapping, Sequence, Tuple

import matplotlib
import numpy as np

matplotlib.use('Agg')

from matplotlib import pyplot as plt  # noqa: E402

Curve = Tuple[np.ndarray, np.ndarray]  # actor steps, values


def read_log(path: str) -> Dict[str, np.ndarray]:
  """A CSV log as columns; empty cells are NaN.

  Args:
    path: of `logs.csv`.

  Returns:
    float64 [rows] a column.
  """
  with open(path, newline='') as f:
    rows = list(csv.DictReader(f))
  names = rows[0].keys() if rows else ()
  return {
    name: np.array([float(row[name] or 'nan') for row in rows])
    for name in names
  }


def smoothed_curve(
  columns: Mapping[str, np.ndarray], name: str, *, window: int
) -> Curve:
  """A running mean over the last `window` episodes against actor steps.

  It begins when there are a fifth as many: that of the first is mere chance.
  """
  keep = ~np.isnan(columns[name])
  steps, values = columns['actor_steps'][keep], columns[name][keep]
  sums = np.concatenate([[0.0], np.cumsum(values)])
  ends = np.arange(max(window // 5, 1), len(values) + 1)
  starts = np.maximum(ends - window, 0)
  return steps[ends - 1], (sums[ends] - sums[starts]) / (ends - starts)


def learning_curves(
  path: str, curves: Mapping[str, Curve], *, title: str, ylabel: str
) -> None:
  """Draws curves against actor steps.

  Args:
    path: of the PNG.
    curves: by label.
    title: of the plot.
    ylabel: of its values.
  """
  figure, axes = plt.subplots(figsize=(7, 4.2))
  for label, (steps, values) in curves.items():
    axes.plot(steps, values, label=label, linewidth=1.8)
  axes.set_xlabel('actor steps')
  axes.set_ylabel(ylabel)
  axes.set_title(title)
  axes.grid(alpha=0.3)
  axes.legend(frameon=False)
  axes.spines[['top', 'right']].set_visible(False)
  _save(figure, path)


def heat_maps(
  path: str,
  visits: Mapping[str, np.ndarray],
  background: np.ndarray,
  *,
  title: str,
) -> None:
  """Draws how often each cell of a grid was visited, one map a policy.

  Args:
    path: of the PNG.
    visits: counts [height, width] by label, of equally many episodes.
    background: uint8 RGB [height * tile, width * tile, 3], the empty grid.
    title: of the figure.
  """
  rows, columns = np.nonzero(sum(visits.values()))
  shape = next(iter(visits.values())).shape
  top = max(rows.min(initial=shape[0]) - 2, 0)
  bottom = min(rows.max(initial=0) + 3, shape[0])
  left = max(columns.min(initial=shape[1]) - 2, 0)
  right = min(columns.max(initial=0) + 3, shape[1])
  largest = max(np.log10(1 + v.max()) for v in visits.values())
  figure, all_axes = plt.subplots(
    1, len(visits), figsize=(4.2 * len(visits) + 0.8, 4.6), squeeze=False
  )
  image: Any = None
  for axes, (label, counts) in zip(all_axes[0], visits.items(), strict=True):
    extent = (-0.5, shape[1] - 0.5, shape[0] - 0.5, -0.5)
    axes.imshow(background, extent=extent, alpha=0.55)
    shown = np.ma.masked_equal(np.log10(1 + counts), 0)
    image = axes.imshow(shown, cmap='inferno', vmin=0, vmax=largest, alpha=0.85)
    axes.set_xlim(left - 0.5, right - 0.5)
    axes.set_ylim(bottom - 0.5, top - 0.5)
    axes.set_title(label)
    axes.set_xticks([])
    axes.set_yticks([])
  figure.suptitle(title, y=0.97)
  figure.colorbar(
    image, ax=all_axes[0].tolist(), label='log10(1 + visits)', shrink=0.8
  )
  _save(figure, path)


def _save(figure: Any, path: str) -> None:
  pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
  figure.savefig(path, dpi=130, bbox_inches='tight')
  plt.close(figure)


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
  """A plain-text table, its first column left-aligned."""
  cells = [[str(x) for x in row] for row in (header, *rows)]
  widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
  lines = [
    '  '.join(
      x.ljust(w) if i == 0 else x.rjust(w)
      for i, (x, w) in enumerate(zip(row, widths, strict=True))
    )
    for row in cells
  ]
  return '\n'.join([lines[0], '-' * len(lines[0]), *lines[1:]])
