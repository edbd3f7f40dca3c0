"""Reads the CSV logs in the workdir of a run."""

import mmap
import pathlib
from typing import Dict, Iterator, List, Tuple

import numpy as np

from bt_acme import files
from bt_acme.evaluation import tables


def read_log(path: str) -> Dict[str, np.ndarray]:
  """Reads the columns of a CSV log.

  Args:
    path: the path of a `logs.csv`.

  Returns:
    The values of each column, float64 [rows]; NaN for empty cells.
  """
  rows = tables.read_csv(pathlib.Path(path))
  names = rows[0].keys() if rows else ()
  return {
    name: np.array([float(row[name] or 'nan') for row in rows])
    for name in names
  }


def read_rows(workdir: str, label: str) -> List[Dict[str, float]]:
  """Reads the rows of a run's log; returns no rows if there is no log.

  Args:
    workdir: the directory of the run.
    label: `actor`, `learner` or `evaluator`.
  """
  path = path_of(workdir, label)
  if not path.is_file():
    return []
  return [
    {name: float(value) for name, value in row.items() if value}
    for row in tables.read_csv(path)
  ]


def read_columns(workdir: str, label: str) -> Dict[str, np.ndarray]:
  """Reads the columns of a run's log; returns no columns if there is no log.

  Args:
    workdir: the directory of the run.
    label: `actor`, `learner` or `evaluator`.

  Returns:
    The columns, as returned by `read_log`.
  """
  path = path_of(workdir, label)
  return read_log(str(path)) if path.is_file() else {}


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
    names = f.readline().strip().split(',')
  for start, line in lines_from_end(path):
    row = dict(zip(names, line.decode().strip().split(','), strict=False))
    if start and row.get(column):
      return float(row[column])
  return 0.0


def lines_from_end(path: pathlib.Path) -> Iterator[Tuple[int, bytes]]:
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
