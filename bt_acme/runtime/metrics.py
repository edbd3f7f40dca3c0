"""What a run writes down: metrics as CSV and TensorBoard, and a status line.

`make_logger` gives Acme's logger interface one folder a label under the run's
`logs/`. A run that resumes goes on in the same files; rows that it wrote after
its last checkpoint are then there twice, once from either life.
"""

import collections
import csv
import datetime
import io
import math
import os
import pathlib
import shutil
import sys
import time
from typing import (
  Any,
  Callable,
  Deque,
  Dict,
  List,
  Mapping,
  Optional,
  TextIO,
  Tuple,
  Union,
)

import numpy as np
import tensorboardX
from absl import logging
from acme.utils.loggers import base

Number = Union[int, float]

# How a process tells its launcher that a line is the status line; and the
# variable, `live` or `plain`, in which the launcher says what it makes of it.
STATUS_MARK = '\x1e'
STATUS_VARIABLE = 'BT_ACME_STATUS'
_STATUS_SECONDS = {'live': 1.0, 'plain': 10.0}
# The first that a row has is its step in TensorBoard.
_STEP_KEYS = ('actor_steps', 'learner_steps')
_RATE_SECONDS = 30.0  # Over which speeds are averaged.


def make_logger(
  workdir: Union[str, pathlib.Path], label: str, *, time_delta: float = 0.0
) -> base.Logger:
  """Makes the logger of one node.

  Args:
    workdir: of the run; the files lie in `logs/LABEL` in it.
    label: of the node, one writer each.
    time_delta: seconds between two rows. Rows that come sooner are dropped, but
      for the last one, which `close` writes.
  """
  folder = pathlib.Path(workdir) / 'logs' / label
  folder.mkdir(parents=True, exist_ok=True)
  return MetricsLogger(folder, time_delta=time_delta)


class MetricsLogger(base.Logger):
  """Writes rows of scalars to `logs.csv` and to TensorBoard.

  A value that is not finite is written as it is, and warned of the first time.
  """

  def __init__(
    self,
    folder: pathlib.Path,
    *,
    time_delta: float = 0.0,
    clock: Callable[[], float] = time.monotonic,
  ):
    self._folder = folder
    self._table = CSVTable(folder / 'logs.csv')
    self._summaries = tensorboardX.SummaryWriter(str(folder), flush_secs=10)
    self._time_delta = time_delta
    self._clock = clock
    self._next_time = -math.inf
    self._held_back: Optional[base.LoggingData] = None
    self._warned: set = set()

  def write(self, data: base.LoggingData) -> None:
    """Writes scalars: numbers or arrays of one element, on any device."""
    now = self._clock()
    if now < self._next_time:
      self._held_back = data
      return
    self._next_time = now + self._time_delta
    self._held_back = None
    self._write_now(data)

  def close(self) -> None:
    if self._held_back is not None:
      self._write_now(self._held_back)
      self._held_back = None
    self._summaries.close()

  def _write_now(self, data: base.LoggingData) -> None:
    row = {key: to_number(key, value) for key, value in data.items()}
    step = next((int(row[key]) for key in _STEP_KEYS if key in row), None)
    self._table.append(row)
    for key, value in row.items():
      self._summaries.add_scalar(key, value, step)
      if not math.isfinite(value) and key not in self._warned:
        self._warned.add(key)
        logging.warning('%s is %s in %s', key, value, row)


def to_number(key: str, value: Any) -> Number:
  """Fetches one scalar, from whatever device it is on.

  Raises:
    ValueError: where it is none.
  """
  array = np.asarray(value)
  if array.size != 1 or array.dtype.kind in 'OSU':
    raise ValueError(f'{key}={value!r} cannot be logged: it is no scalar.')
  return int(array.item()) if array.dtype.kind in 'iub' else float(array.item())


class CSVTable:
  """A CSV file that grows by rows and, when need be, by columns.

  Every row is in the file when `append` returns. A row that was torn when the
  process before was killed is cut off.
  """

  def __init__(self, path: pathlib.Path):
    self._path = path
    self._columns: List[str] = []
    if path.exists():
      text = path.read_text()
      whole = text[: text.rfind('\n') + 1]
      if whole != text:
        self._replace(whole)
      self._columns = next(csv.reader(io.StringIO(whole)), [])

  def append(self, row: Mapping[str, Number]) -> None:
    """Adds a row; cells that it does not have are left empty."""
    new = [key for key in row if key not in self._columns]
    if new:
      self._add_columns(new)
    with self._path.open('a', newline='') as file:
      csv.DictWriter(file, self._columns, lineterminator='\n').writerow(row)

  def _add_columns(self, new: List[str]) -> None:
    rows: List[Dict[str, str]] = []
    if self._path.exists():
      with self._path.open(newline='') as file:
        rows = list(csv.DictReader(file))
    self._columns = [*self._columns, *new]
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, self._columns, lineterminator='\n')
    writer.writeheader()
    writer.writerows(rows)
    self._replace(buffer.getvalue())

  def _replace(self, text: str) -> None:
    """Swaps the whole file in one step, so that no reader sees half of it."""
    temporary = self._path.with_suffix('.tmp')
    temporary.write_text(text)
    os.replace(temporary, self._path)


class Progress:
  """The status line of a run, live.

  On a terminal it is one line, rewritten each second; elsewhere a line every
  ten. In a process of `launching.launch` the launcher does the drawing.
  """

  def __init__(
    self,
    max_actor_steps: int,
    *,
    stream: Optional[TextIO] = None,
    clock: Callable[[], float] = time.monotonic,
  ):
    self._max_actor_steps = max_actor_steps
    self._stream = stream or sys.stdout
    self._clock = clock
    mode = os.environ.get(STATUS_VARIABLE)
    self._launched = mode is not None
    self._mode = mode or ('live' if self._stream.isatty() else 'plain')
    self._next_time = -math.inf
    self._values: Mapping[str, Any] = {}
    self._history: Deque[Tuple[float, Number, Number]] = collections.deque()

  def update(self, values: Mapping[str, Any]) -> None:
    """Shows the state of the run, if it is time to.

    Args:
      values: `actor_steps`, and as far as known `learner_steps`, `replay_size`
        (sequences), `episode_return` (mean of the actors' recent ones),
        `evaluator_return` (the latest).
    """
    self._values = values
    if self._clock() >= self._next_time:
      self._show()

  def close(self) -> None:
    """Shows the last state, and leaves it on the screen."""
    if self._values:
      self._show()
    if self._mode == 'live' and not self._launched:
      self._stream.write('\n')
      self._stream.flush()

  def _show(self) -> None:
    now = self._clock()
    self._next_time = now + _STATUS_SECONDS[self._mode]
    counts = [self._values.get(key, 0) for key in _STEP_KEYS]
    self._history.append((now, *counts))
    while len(self._history) > 2 and now - self._history[1][0] > _RATE_SECONDS:
      self._history.popleft()
    start, *counts_then = self._history[0]
    speeds = [
      (count - then) / (now - start) if now > start else None
      for count, then in zip(counts, counts_then, strict=True)
    ]
    text = status_line(self._values, self._max_actor_steps, *speeds)
    if self._launched:
      self._stream.write(f'{STATUS_MARK}{text}\n')
    elif self._mode == 'live':
      self._stream.write(render_live(text))
    else:
      self._stream.write(f'{text}\n')
    self._stream.flush()


def status_line(
  values: Mapping[str, Any],
  max_actor_steps: int,
  actor_steps_per_second: Optional[float],
  learner_steps_per_second: Optional[float],
) -> str:
  """One line that says how far a run is; `Progress.update` names the values."""
  actor_steps = int(values.get('actor_steps', 0))
  share = actor_steps / max_actor_steps
  state = f'actor steps {actor_steps:,} / {max_actor_steps:,} ({share:.0%})'
  if actor_steps_per_second:
    steps_left = max(0, max_actor_steps - actor_steps)
    seconds = round(steps_left / actor_steps_per_second)
    state += f', {datetime.timedelta(seconds=seconds)} left'
  parts = [state]
  if actor_steps_per_second is not None:
    parts.append(f'{actor_steps_per_second:,.0f} steps/s')
  if learner_steps_per_second is not None and 'learner_steps' in values:
    parts.append(f'{learner_steps_per_second:,.1f} learner steps/s')
  if 'replay_size' in values:
    parts.append(f'replay {int(values["replay_size"]):,}')
  for key, name in (('episode_return', 'return'), ('evaluator_return', 'eval')):
    if key in values:
      parts.append(f'{name} {float(values[key]):,.2f}')
  return ' | '.join(parts)


def render_live(text: str) -> str:
  """What rewrites the terminal's current line, cut to the terminal's width."""
  width = shutil.get_terminal_size().columns - 1
  return f'\r{text[:width]}\x1b[K'
