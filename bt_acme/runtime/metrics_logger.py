"""Logs the metrics of a run as CSV and for TensorBoard.

Each label has its own directory under the run's `logs/`. A run that resumes
appends to the existing files, after `cut` has dropped the rows written since
its checkpoint and has marked them as superseded for TensorBoard.
Each row records its `session` and the `seconds` that the run has taken so far,
over all sessions. While the disk is full, rows are buffered.
"""

import math
import os
import pathlib
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from absl import logging

from bt_acme import files, untrusted
from bt_acme.evaluation import logs
from bt_acme.runtime import provenance, tensorboard_events

Number = int | float

# Columns that give a row's step in TensorBoard, in order of precedence.
_STEP_KEYS = ('actor_steps', 'learner_steps')
# Columns that record when a row was written. They differ even between runs with
# equal results.
MARKS = ('seconds', 'session')
# The fraction of a log's rows that may be used ahead of schedule. All rows are
# written until half of it is used.
_AHEAD = 0.1
# Multiples of this number, modulo 1, fill the unit interval evenly, even if
# only every nth multiple is used.
_GOLDEN_RATIO = (math.sqrt(5) - 1) / 2
# Columns that locate a row and are not plotted as curves.
_NO_SUMMARIES = (
  *(*MARKS, 'environment', 'epsilon', 'flight_probability'),
  'flight_behavior',
  'evaluation_point',
)


def sync(workdir: str | pathlib.Path, labels: Iterable[str]) -> None:
  """Syncs logs to the disk, regardless of which process writes them."""
  for label in labels:
    path = logs.path_of(workdir, label)
    if path.exists():
      files.sync_file(path)
      # The writer may have been killed before it synced the file's name.
      files.sync_folder(path.parent)


class MetricsLogger:
  """Writes rows of scalars to `logs.csv` and to TensorBoard.

  Non-finite values are written unchanged; the first one in each column of
  metrics logs a warning.
  """

  def __init__(
    self,
    workdir: str | pathlib.Path,
    label: str,
    *,
    time_delta: float = 0.0,
    keeps: Callable[[int, int], bool] = lambda step, num_rows: True,
    clock: Callable[[], float] = time.monotonic,
  ):
    """Initializes the logger and opens its files.

    Args:
      workdir: the run's directory; the files are in its `logs/LABEL`.
      label: the label, which names the directory. Only one process may write to
        it.
      time_delta: the minimum number of seconds between two rows. Earlier rows
        are dropped, except for the last one, which `close` writes.
      keeps: selects the rows of a log of limited length; see `subsampler`.
      clock: a function that returns seconds.
    """
    path = logs.path_of(workdir, label)
    folder = path.parent
    files.make_folder(folder.parent)
    files.make_folder(folder)
    self._session = provenance.current(str(workdir))
    self._table = CSVTable(path)
    self._folder = folder
    self._summaries = tensorboard_events.Summaries(folder)
    self._time_delta, self._keeps = time_delta, keeps
    self._clock = clock
    # Read only once, because the time of day may be set back during the run.
    self._epoch = time.time() - clock()
    self._next_time = -math.inf
    self._held_back: Mapping[str, Any] | None = None
    # Rows that are buffered while the disk is full.
    self._waiting: list[dict[str, Number]] = []
    self._is_disk_full = False
    self._warned: set = set()  # Columns that had a non-finite value.

  def cut(self, counts: Mapping[str, int]) -> None:
    """Drops rows written after a checkpoint; call it before the first `write`.

    Args:
      counts: the numbers of actor steps and learner steps at the checkpoint.
        Rows with larger numbers are dropped. TensorBoard discards those with
        more actor steps.
    """
    self._summaries.purge_step = counts['actor_steps'] + 1
    self._table.cut({name: counts[name] for name in _STEP_KEYS})

  def write(self, data: Mapping[str, Any]) -> None:
    """Writes a row of scalars: numbers or one-element arrays on any device."""
    num_rows = self._table.num_rows + len(self._waiting)
    if not self._keeps(_step_of(data) or 0, num_rows):
      return
    now = self._clock()
    if now < self._next_time:
      self._held_back = data
      return
    self._next_time = now + self._time_delta
    self._held_back = None
    self._write_now(data)

  def flush(self) -> None:
    """Writes the row that was held back, if any."""
    if self._held_back is not None:
      self._write_now(self._held_back)
      self._held_back = None

  def close(self) -> None:
    """Writes the row that was held back, if any, and closes the files."""
    self.flush()
    if not self.write_waiting():
      logging.warning(
        'Disk full; rows lost at the end of %s/logs.csv: %d',
        *(self._folder, len(self._waiting)),
      )
    self._summaries.close()

  def _write_now(self, data: Mapping[str, Any]) -> None:
    row = {key: to_number(key, value) for key, value in data.items()}
    seconds = round(self._session.seconds(self._epoch + self._clock()), 3)
    marks = dict(zip(MARKS, (seconds, self._session.number), strict=True))
    self._waiting.append({**row, **marks})
    curves = {k: v for k, v in row.items() if k not in _NO_SUMMARIES}
    self._summaries.write(_step_of(row), curves)
    for key, value in curves.items():
      if not math.isfinite(value) and key not in self._warned:
        self._warned.add(key)
        logging.warning('Non-finite metric %s=%s in row %s', key, value, row)
    self.write_waiting()

  def write_waiting(self) -> bool:
    """Writes the buffered rows; returns whether all of them were written."""
    try:
      while self._waiting:
        self._table.append(self._waiting[0])
        del self._waiting[0]
    except OSError as error:
      if not files.is_disk_full(error):
        raise
      logging.log_if(
        logging.WARNING,
        'Disk full; buffering rows of %s/logs.csv: %s',
        not self._is_disk_full,
        *(self._folder, untrusted.one_line(error)),
      )
      self._is_disk_full = True
      return False
    self._is_disk_full = False
    return True


def subsampler(max_rows: int, max_steps: int) -> Callable[[int, int], bool]:
  """Returns a function that subsamples a log to a maximum length.

  If the budget was raised, the log already has more rows than the new budget
  would have allowed so far. These rows stay, and as many rows follow as if the
  new budget had been set from the start.

  The choice among simultaneous rows does not depend on their order, so all
  environments and epsilons are represented evenly.

  Args:
    max_rows: the maximum number of rows.
    max_steps: the step at which the log ends.

  Returns:
    A function to call with the step of the next row and the number of rows in
    the log. It returns whether to write the row.
  """
  ahead = _AHEAD * max_rows
  num_seen = 0
  num_extra: float | None = None  # Set by the first row.

  def keeps(step: int, num_rows: int) -> bool:
    nonlocal num_seen, num_extra
    num_seen += 1
    scheduled = (max_rows - ahead) * min(step / max_steps, 1.0)
    if num_extra is None:
      num_extra = max(num_rows - scheduled - ahead, 0.0)
    probability = 2 * (scheduled + ahead + num_extra - num_rows) / ahead
    return num_seen * _GOLDEN_RATIO % 1 < probability

  return keeps


def _step_of(row: Mapping[str, Any]) -> int | None:
  """Returns the step that a row belongs to; None if it has none."""
  steps = (row.get(key) for key in _STEP_KEYS)
  return next((int(step) for step in steps if step is not None), None)


def to_number(key: str, value: Any) -> Number:
  """Fetches one scalar from any device.

  Raises:
    ValueError: if the value is not a scalar.
  """
  array = np.asarray(value)
  if array.size != 1 or array.dtype.kind in 'OSU':
    raise ValueError(
      f'{key}={value!r} cannot be logged because it is not a scalar.'
    )
  return int(array.item()) if array.dtype.kind in 'iub' else float(array.item())


class CSVTable:
  """A CSV file of numbers that grows by rows and, where needed, by columns.

  `append` writes a complete row; if it raises OSError, the file is unchanged. A
  row left incomplete by a killed process is removed.

  Attributes:
    num_rows: the number of rows.
  """

  def __init__(self, path: pathlib.Path):
    """Initializes the table from an existing file, if any."""
    self._path = path
    self._columns: list[str] = []
    self.num_rows = 0
    if path.exists():
      start, line = next(logs.lines_from_end(path), (0, b''))
      os.truncate(path, start + len(line))
      with path.open('rb') as file:
        self._columns = logs.columns_of(file.readline().decode())
        self.num_rows = sum(1 for _ in file)

  def append(self, row: Mapping[str, Number]) -> None:
    """Adds a row; columns that it lacks are left empty."""
    new = [key for key in row if key not in self._columns]
    if new:
      rows = [row + ',' * len(new) for row in self._rows()]
      self._rewrite([*self._columns, *new], rows)
    cells = (str(row.get(name, '')) for name in self._columns)
    size = self._path.stat().st_size
    try:
      with self._path.open('a') as file:
        file.write(','.join(cells) + '\n')
    except OSError:
      os.truncate(self._path, size)
      raise
    self.num_rows += 1

  def cut(self, most: Mapping[str, int]) -> None:
    """Drops the last rows that exceed the maximum of any column.

    Args:
      most: the maximum of each column. These columns only increase, so only the
        dropped rows are read.
    """
    if not self.num_rows:
      return
    for start, line in logs.lines_from_end(self._path):
      cells = line.decode().split(',')
      if len(cells) != len(self._columns) or b'\0' in line:
        raise ValueError(
          f'{self._path} has a damaged line: {line!r}. Delete this line.'
        )
      row = dict(zip(self._columns, cells, strict=True))
      if not self.num_rows or all(
        float(row.get(name, '').strip() or 0) <= most[name] for name in most
      ):
        os.truncate(self._path, start + len(line))
        return
      self.num_rows -= 1

  def keep(self, condition: Callable[[Mapping[str, str]], bool]) -> None:
    """Drops all rows that do not satisfy a condition."""
    kept = [
      row
      for row in self._rows()
      if condition(dict(zip(self._columns, row.split(','), strict=True)))
    ]
    self._rewrite(self._columns, kept)

  def _rows(self) -> list[str]:
    return self._path.read_text().splitlines()[1:] if self._columns else []

  def _rewrite(self, columns: list[str], rows: list[str]) -> None:
    files.write_text(self._path, '\n'.join([','.join(columns), *rows, '']))
    self._columns, self.num_rows = columns, len(rows)
