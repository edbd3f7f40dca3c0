"""Reads the CSV logs in the workdir of a run."""

import contextlib
import mmap
import pathlib
from collections.abc import Iterator

import numpy as np
from absl import logging

from bt_acme import files

# Columns that had another name until 0.1, by their old name.
_RENAMED_COLUMNS = {'life': 'session'}

Row = dict[str, float]


def read_log(path: files.PathLike) -> dict[str, np.ndarray]:
  """Reads the columns of a CSV log.

  A run may be writing the log: its last line is omitted if it is incomplete.
  Damaged lines are omitted with a warning.

  Args:
    path: the path of a `logs.csv`.

  Returns:
    The values of each column, float64 [rows]; NaN for empty cells.
  """
  names, rows = _read(pathlib.Path(path))
  return {
    name: np.array([row.get(name, np.nan) for row in rows])
    for name in names
    if rows
  }


def read_rows(path: pathlib.Path) -> list[Row]:
  """Reads the rows of a CSV log, like `read_log`; none if it is missing."""
  return _read(path)[1] if path.is_file() else []


def read_columns(workdir: str, label: str) -> dict[str, np.ndarray]:
  """Reads the columns of a run's log; returns no columns if there is no log.

  Args:
    workdir: the directory of the run.
    label: `actor`, `learner` or `evaluator`.

  Returns:
    The columns, as returned by `read_log`.
  """
  path = path_of(workdir, label)
  return read_log(path) if path.is_file() else {}


def _read(path: pathlib.Path) -> tuple[list[str], list[Row]]:
  """Returns the names of the columns, and the cells that are not empty."""
  text = path.read_text(errors='replace')
  lines = iter(text[: text.rfind('\n') + 1].splitlines())
  names = columns_of(next(lines, ''))
  rows: list[Row] = []
  num_damaged = 0
  for line in lines:
    cells = zip(names, line.split(','), strict=True)
    try:
      rows.append({name: float(cell) for name, cell in cells if cell})
    except ValueError:
      num_damaged += 1
  if num_damaged:
    logging.warning('Damaged rows omitted: %d of %s', num_damaged, path)
  return names, rows


def columns_of(header: str) -> list[str]:
  """Returns the current names of the columns in the first line of a log."""
  names = header.strip().split(',')
  return [_RENAMED_COLUMNS.get(name, name) for name in names if name]


def last(workdir: str, label: str, column: str) -> float:
  """Returns the last number in a column of a log, or 0 if there is none.

  Args:
    workdir: the directory of the run.
    label: `actor`, `learner` or `evaluator`.
    column: the name of the column.
  """
  path = path_of(workdir, label)
  if not path.is_file():
    return 0.0
  with path.open() as f:
    names = columns_of(f.readline())
  for start, line in lines_from_end(path):
    cells = line.decode(errors='replace').strip().split(',')
    row = dict(zip(names, cells, strict=False))
    if start and row.get(column):
      with contextlib.suppress(ValueError):  # The row is damaged.
        return float(row[column])
  return 0.0


def lines_from_end(path: pathlib.Path) -> Iterator[tuple[int, bytes]]:
  """Yields the offset and text of each complete line, last line first."""
  if not path.stat().st_size:
    return
  with (
    path.open('rb') as file,
    mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text,
  ):
    end = text.rfind(b'\n') + 1
    while end:
      start = text.rfind(b'\n', 0, end - 1) + 1
      yield start, text[start:end]
      end = start


def path_of(workdir: files.PathLike, label: str) -> pathlib.Path:
  """Returns the path of a run's log."""
  return pathlib.Path(workdir) / 'logs' / label / 'logs.csv'
