"""Reads the logs of runs that may be going on, were killed, or were resumed."""

import csv
import pathlib
from typing import Any, Dict, List, NamedTuple, Sequence, Tuple

import numpy as np

from bt_acme.runtime import evaluation_schedule, metrics
from experiments.harness import dataset

Row = Dict[str, float]
_STEPS, _SESSION = 'actor_steps', 'session'
# The columns that `dataset.Score` averages, by the names that logs have.
_MEANS = {
  'length_mean': 'episode_length',
  **{name: name for name in ('greedy_extra_share', 'flight_share')},
  **{name: name for name in ('cells', 'intrinsic_return')},
}


class Log(NamedTuple):
  """What a log holds.

  Attributes:
    rows: the episodes, by actor steps.
    notes: what was left out, in words.
  """

  rows: Tuple[Row, ...] = ()
  notes: Tuple[str, ...] = ()


def read(path: pathlib.Path) -> Log:
  """Reads a log of episodes; one that is not there is empty.

  A row that was cut short is left out. Where the actor steps fall from one
  session of the run to the next, it had resumed from a checkpoint, and the rows
  above do not count. Within a session they may fall, because evaluators take
  turns.
  """
  try:
    text = path.read_text(errors='replace')
  except OSError:
    return Log()
  notes: List[str] = []
  whole = text[: text.rfind('\n') + 1]
  if whole != text:
    notes.append('its last row is torn, and left out')
  lines = csv.reader(whole.splitlines())
  header = [metrics.RENAMED_COLUMNS.get(name, name) for name in next(lines, [])]
  rows: List[Row] = []
  num_torn = num_doubled = 0
  for line in lines:
    row = _parsed(header, line)
    if row is None:
      num_torn += 1
      continue
    while rows and _is_repeated(rows[-1], row):
      rows.pop()
      num_doubled += 1
    rows.append(row)
  if num_torn:
    notes.append(f'{num_torn} rows are damaged, and left out')
  if num_doubled:
    notes.append(f'{num_doubled} rows from before it was resumed are left out')
  rows.sort(key=lambda row: row[_STEPS])
  return Log(tuple(rows), tuple(notes))


def evaluations(run_id: str, rows: Sequence[Row]) -> List[dataset.Score]:
  """Returns a score for each point of a run's evaluations.

  Of a point that was evaluated in two sessions the last one counts.
  """
  groups: Dict[float, List[Row]] = {}
  for row in rows:
    point = row.get(evaluation_schedule.POINT, row[_STEPS])
    groups.setdefault(point, []).append(row)
  return [
    score(run_id, _of_last_session(group), dataset.EVALUATOR, int(point))
    for point, group in sorted(groups.items())
  ]


def binned(
  run_id: str, rows: Sequence[Row], budget_steps: int, num_bins: int
) -> List[dataset.Score]:
  """Returns the training episodes' scores over equal parts of the budget.

  The score of a part has the actor steps of its end. Episodes that end after
  the budget, with the last turn of all environments, are in the last part.
  """
  groups: Dict[int, List[Row]] = {}
  for row in rows:
    part = int(np.ceil(row[_STEPS] * num_bins / budget_steps))
    groups.setdefault(min(max(part, 1), num_bins), []).append(row)
  return [
    score(run_id, group, dataset.ACTOR, part * budget_steps // num_bins)
    for part, group in sorted(groups.items())
  ]


def score(
  run_id: str, rows: Sequence[Row], source: str, actor_steps: int
) -> dataset.Score:
  """Returns the score over some episodes."""
  returns = np.array([row['episode_return'] for row in rows], np.float64)
  means: Dict[str, Any] = {}
  for name, column in _MEANS.items():
    values = [row[column] for row in rows if column in row]
    means[name] = float(np.mean(values)) if values else dataset.NAN
  return dataset.Score(
    run_id,
    source,
    actor_steps,
    len(rows),
    float(np.mean(returns)),
    float(np.std(returns)),
    **means,
  )


def _is_repeated(before: Row, row: Row) -> bool:
  """Returns whether a row's session resumed from before another row."""
  falls = before[_STEPS] > row[_STEPS]
  if _SESSION in before and _SESSION in row:
    return falls and before[_SESSION] < row[_SESSION]
  return falls


def _of_last_session(rows: Sequence[Row]) -> List[Row]:
  last = max(row.get(_SESSION, 0) for row in rows)
  return [row for row in rows if row.get(_SESSION, 0) == last]


def _parsed(header: Sequence[str], line: Sequence[str]) -> Any:
  """Returns a line's numbers by column; None for a damaged line."""
  if len(line) != len(header):
    return None
  row: Row = {}
  for name, cell in zip(header, line, strict=True):
    try:
      row[name] = float(cell)
    except ValueError:
      if name in (_STEPS, 'episode_return'):
        return None
  return row if {_STEPS, 'episode_return'} <= set(row) else None
