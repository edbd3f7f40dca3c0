"""The metrics that a run writes down, as CSV and for TensorBoard.

`make_logger` gives every label its own folder under the run's `logs/`. A run
that resumes appends to the files that are there, after `cut` or `last_step` has
dropped the rows that it wrote after its checkpoint. TensorBoard is told to
forget these. Each row tells its `session`, and the `seconds` that the run has
taken by then, over all sessions. On a full disk rows wait until there is room.
"""

import math
import os
import pathlib
import time
from typing import (
  Any,
  Callable,
  Dict,
  Iterable,
  List,
  Mapping,
  Optional,
  Union,
)

import numpy as np
from absl import logging

from bt_acme import files, untrusted
from bt_acme.evaluation import logs
from bt_acme.runtime import provenance
from bt_acme.runtime import summaries as summaries_lib

Number = Union[int, float]

# The first of these that a row has is its step in TensorBoard.
_STEP_KEYS = ('actor_steps', 'learner_steps')
# What tells when a row was written. It differs between two runs of one seed.
MARKS = ('seconds', 'session')
# Columns that had another name until 0.1, by the old one.
RENAMED_COLUMNS = {'life': 'session'}
_CHUNK = 1 << 20  # Bytes.
# What places a row, and makes no curve.
_NO_SUMMARIES = (
  *(*MARKS, 'environment', 'epsilon', 'flight_probability'),
  'evaluation_point',
)


def make_logger(
  workdir: Union[str, pathlib.Path],
  label: str,
  *,
  time_delta: float = 0.0,
  subsampler: Optional['Subsampler'] = None,
  last_step: Optional[int] = None,
  clock: Callable[[], float] = time.monotonic,
) -> 'MetricsLogger':
  """Makes the logger of one label.

  Args:
    workdir: the run's folder; the files lie in its `logs/LABEL`.
    label: the label, which names the folder. Only one process may write to it.
    time_delta: the seconds between two rows. A row that comes sooner is
      dropped, except for the last one, which `close` writes.
    subsampler: chooses the rows of a log that has a largest length.
    last_step: see `MetricsLogger`.
    clock: a function that returns seconds.
  """
  folder = pathlib.Path(workdir) / 'logs' / label
  files.make_folder(folder.parent)
  files.make_folder(folder)
  return MetricsLogger(
    folder,
    time_delta=time_delta,
    subsampler=subsampler,
    last_step=last_step,
    session=provenance.current(str(workdir)),
    clock=clock,
  )


def sync(workdir: Union[str, pathlib.Path], labels: Iterable[str]) -> None:
  """Has the kernel write logs to the disk, whichever process writes to them."""
  for label in labels:
    path = pathlib.Path(workdir) / 'logs' / label / 'logs.csv'
    if path.exists():
      files.sync_file(path)
      # Whoever made the file may have been killed before its name was synced.
      files.sync_folder(path.parent)


class MetricsLogger:
  """Writes rows of scalars to `logs.csv` and to TensorBoard.

  A value that is not finite is written as it is. The first time that a column
  has one, a warning is logged.
  """

  def __init__(
    self,
    folder: pathlib.Path,
    *,
    time_delta: float = 0.0,
    subsampler: Optional['Subsampler'] = None,
    last_step: Optional[int] = None,
    session: Optional[provenance.Session] = None,
    clock: Callable[[], float] = time.monotonic,
  ):
    """Opens the files.

    Args:
      folder: the folder for the files, which exists.
      time_delta: the seconds between two rows, see `make_logger`.
      subsampler: see `make_logger`.
      last_step: the step of the state from which a run goes on. Later rows that
        are there will be written again, and are dropped.
      session: the session of the run, for the columns `seconds` and `session`;
        None leaves them out.
      clock: a function that returns seconds.
    """
    self._session = session
    self._table = CSVTable(folder / 'logs.csv')
    self._folder = folder
    self._summaries = summaries_lib.Summaries(folder)
    if last_step is not None:
      self._summaries.purge_step = last_step + 1
      self._table.drop_from(last_step + 1)
    self._time_delta, self._subsampler = time_delta, subsampler
    self._clock = clock
    self._next_time = -math.inf
    self._held_back: Optional[Mapping[str, Any]] = None
    # Rows that the disk had no room for.
    self._waiting: List[Dict[str, Number]] = []
    self._warned: set = set()  # Columns that had a value that is not finite.
    self._has_warned_of_the_disk = False

  @property
  def num_rows(self) -> int:
    """The number of rows so far, with those that wait for room on the disk."""
    return self._table.num_rows + len(self._waiting)

  @property
  def num_written(self) -> int:
    """The number of rows in the file, without those that wait for room.

    A checkpoint counts these: if it counted a row that is lost while it waits,
    the log would later be cut to a wrong one.
    """
    return self._table.num_rows

  def cut(self, num_rows: int, last_step: int) -> None:
    """Goes back to an earlier state; called before the first row is written.

    Args:
      num_rows: the number of rows by then; later ones are dropped.
      last_step: the step by then; TensorBoard forgets later ones.
    """
    self._summaries.purge_step = last_step + 1
    self._table.cut(num_rows)

  def write(self, data: Mapping[str, Any]) -> None:
    """Writes scalars: numbers or arrays of one element, on any device."""
    if self._subsampler is not None and not self._subsampler.keeps(
      _step_of(data) or 0, self.num_rows
    ):
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
        '%d rows are not in %s/logs.csv, because the disk had no room.',
        *(len(self._waiting), self._folder),
      )
    self._summaries.close()

  def _write_now(self, data: Mapping[str, Any]) -> None:
    row = {key: to_number(key, value) for key, value in data.items()}
    self._waiting.append({**row, **self._marks()})
    self.write_waiting()
    curves = {k: v for k, v in row.items() if k not in _NO_SUMMARIES}
    self._summaries.write(_step_of(row), curves)
    for key, value in curves.items():
      if not math.isfinite(value) and key not in self._warned:
        self._warned.add(key)
        logging.warning('%s is %s in %s', key, value, row)

  def write_waiting(self) -> bool:
    """Writes the rows that wait; returns whether the disk has room for all."""
    try:
      while self._waiting:
        self._table.append(self._waiting[0])
        del self._waiting[0]
    except OSError as error:
      if not files.is_disk_full(error):
        raise
      if not self._has_warned_of_the_disk:
        self._has_warned_of_the_disk = True
        logging.warning(
          'Rows of %s/logs.csv wait until the disk has room: %s',
          *(self._folder, untrusted.one_line(error)),
        )
      return False
    self._has_warned_of_the_disk = False
    return True

  def _marks(self) -> Dict[str, Number]:
    """Returns what tells when a row is written."""
    if self._session is None:
      return {}
    seconds = round(self._session.seconds(time.time()), 3)
    return dict(zip(MARKS, (seconds, self._session.number), strict=True))


class Subsampler:
  """Chooses the rows of a log that has a largest length.

  If the budget was raised, the log is longer than it would be by now. Its rows
  stay, and as many follow as if that budget had been there from the start.

  Which of the rows that come together are kept does not depend on their order,
  so that all environments and all epsilons have their share.
  """

  # The share of the rows that may come before their time. Until half of it is
  # used, all rows are kept.
  _AHEAD = 0.1
  # Its multiples fill the unit interval evenly, and so do those of each stride.
  _GOLDEN_RATIO = (math.sqrt(5) - 1) / 2

  def __init__(self, max_rows: int, max_steps: int):
    """Prepares the choice.

    Args:
      max_rows: the largest number of rows.
      max_steps: the step at which the log ends.
    """
    self._max_rows = max_rows
    self._max_steps = max_steps
    self._num_seen = 0
    self._num_extra: Optional[float] = None  # Known with the first row.

  def keeps(self, step: int, num_rows: int) -> bool:
    """Returns whether the next row is kept.

    Args:
      step: the row's step.
      num_rows: the number of rows that the log has.
    """
    self._num_seen += 1
    ahead = self._AHEAD * self._max_rows
    due = (self._max_rows - ahead) * min(step / self._max_steps, 1.0)
    if self._num_extra is None:
      self._num_extra = max(num_rows - due - ahead, 0.0)
    probability = 2 * (due + ahead + self._num_extra - num_rows) / ahead
    return self._num_seen * self._GOLDEN_RATIO % 1 < probability


def _step_of(row: Mapping[str, Any]) -> Optional[int]:
  """Returns the step that a row belongs to; None if it has none."""
  steps = (row.get(key) for key in _STEP_KEYS)
  # A cell that is empty is read as an empty text.
  return next((int(step) for step in steps if step not in (None, '')), None)


def to_number(key: str, value: Any) -> Number:
  """Fetches one scalar from whatever device it is on.

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
  """A CSV file of numbers, to which rows and, where needed, columns are added.

  A row is in the file when `append` returns, and no part of it if that raises
  OSError. If an earlier process was killed while it wrote a row, the incomplete
  row is cut off.

  Attributes:
    num_rows: the number of rows.
  """

  def __init__(self, path: pathlib.Path):
    """Reads the header of an existing table, and counts its rows."""
    self._path = path
    self._columns: List[str] = []
    num_lines = 0
    if path.exists():
      start, line = next(logs.lines_from_end(path), (0, b''))
      self._truncate(start + len(line))
      with path.open('rb') as file:
        header = _cells(file.readline())
        self._columns = [RENAMED_COLUMNS.get(name, name) for name in header]
        file.seek(0)
        chunks = iter(lambda: file.read(_CHUNK), b'')
        num_lines = sum(chunk.count(b'\n') for chunk in chunks)
    self.num_rows = max(num_lines - 1, 0)

  def append(self, row: Mapping[str, Number]) -> None:
    """Adds a row; the cells of columns that it does not have stay empty."""
    new = [key for key in row if key not in self._columns]
    if new:
      self._add_columns(new)
    cells = (str(row.get(name, '')) for name in self._columns)
    size = self._path.stat().st_size
    try:
      with self._path.open('a') as file:
        file.write(','.join(cells) + '\n')
    except OSError:
      os.truncate(self._path, size)
      raise
    self.num_rows += 1

  def cut(self, num_rows: int) -> None:
    """Keeps this many rows, the first ones."""
    self._drop_while(lambda row: self.num_rows > num_rows)

  def drop_from(self, step: int) -> None:
    """Drops the rows of this step and of later ones, which are the last."""
    self._drop_while(lambda row: (_step_of(row) or 0) >= step)

  def keep(self, condition: Callable[[Mapping[str, str]], bool]) -> None:
    """Drops the rows, wherever they are, for which a condition is false."""
    rows = self._path.read_text().splitlines()[1:]
    kept = [
      row
      for row in rows
      if condition(dict(zip(self._columns, row.split(','), strict=False)))
    ]
    if len(kept) < len(rows):
      lines = [','.join(self._columns), *kept]
      files.write_text(self._path, '\n'.join(lines) + '\n')
      self.num_rows = len(kept)

  def _drop_while(self, drops: Callable[[Mapping[str, str]], bool]) -> None:
    """Drops rows from the end; reads no more of the file than these."""
    if not self.num_rows:
      return
    for start, line in logs.lines_from_end(self._path):
      row = dict(zip(self._columns, _cells(line), strict=False))
      if not self.num_rows or not drops(row):
        self._truncate(start + len(line))
        return
      self.num_rows -= 1

  def _truncate(self, size: int) -> None:
    if self._path.stat().st_size > size:
      os.truncate(self._path, size)

  def _add_columns(self, new: List[str]) -> None:
    columns = [*self._columns, *new]
    rows = self._path.read_text().splitlines()[1:] if self._columns else []
    lines = [','.join(columns), *(row + ',' * len(new) for row in rows)]
    files.write_text(self._path, '\n'.join(lines) + '\n')
    self._columns = columns


def _cells(line: bytes) -> List[str]:
  """Returns the cells of a line, of which none has commas or line ends."""
  return line.decode().rstrip().split(',') if line else []
