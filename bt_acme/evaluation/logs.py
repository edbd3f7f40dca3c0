"""Reads the CSV logs that a run leaves in its workdir."""

import csv
import pathlib
from typing import Dict, List

import numpy as np


def read_log(path: str) -> Dict[str, np.ndarray]:
  """Reads the columns of a CSV log.

  Args:
    path: the path of a `logs.csv`.

  Returns:
    Values of each column, float64 [rows]; NaN where a cell is empty.
  """
  with open(path, newline='') as f:
    rows = list(csv.DictReader(f))
  names = rows[0].keys() if rows else ()
  return {
    name: np.array([float(row[name] or 'nan') for row in rows])
    for name in names
  }


def read_rows(workdir: str, label: str) -> List[Dict[str, float]]:
  """Reads the rows of one label of a run; none if it has written none.

  Args:
    workdir: the run's folder.
    label: `actor`, `learner` or `evaluator`.
  """
  path = _path(workdir, label)
  if not path.is_file():
    return []
  with path.open(newline='') as f:
    return [
      {name: float(value) for name, value in row.items() if value}
      for row in csv.DictReader(f)
    ]


def read_columns(workdir: str, label: str) -> Dict[str, np.ndarray]:
  """Reads the columns of one label of a run; none if it has written none.

  Args:
    workdir: the run's folder.
    label: `actor`, `learner` or `evaluator`.

  Returns:
    As `read_log`.
  """
  path = _path(workdir, label)
  return read_log(str(path)) if path.is_file() else {}


def largest(workdir: str, label: str, column: str) -> float:
  """Returns the largest number in a column of a log; 0 if there is none.

  Args:
    workdir: the run's folder.
    label: `actor`, `learner` or `evaluator`.
    column: the name of the column.
  """
  path = _path(workdir, label)
  if not path.is_file():
    return 0.0
  with path.open(newline='') as f:
    cells = (row.get(column) for row in csv.DictReader(f))
    return max((float(cell) for cell in cells if cell), default=0.0)


def _path(workdir: str, label: str) -> pathlib.Path:
  return pathlib.Path(workdir) / 'logs' / label / 'logs.csv'
