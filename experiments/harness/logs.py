"""Reads the logs of runs, which may be running, killed or resumed."""

import contextlib
import csv
import pathlib
from typing import Any, NamedTuple, Sequence

import numpy as np

from bt_acme.runtime import evaluation_schedule, metrics
from experiments.harness import dataset

Row = dict[str, float]
_STEPS, _SESSION = 'actor_steps', 'session'
# Maps the averages of `dataset.Score` to the columns of logs.
_MEANS = {
  'length_mean': 'episode_length',
  **{name: name for name in ('greedy_extra_share', 'flight_share')},
  **{name: name for name in ('cells', 'intrinsic_return')},
}


class Log(NamedTuple):
  """The content of a log.

  Attributes:
    rows: the episodes, sorted by actor steps.
    notes: descriptions of omitted rows.
  """

  rows: tuple[Row, ...] = ()
  notes: tuple[str, ...] = ()


def read(path: pathlib.Path) -> Log:
  """Reads a log of episodes; a missing log is empty.

  Truncated rows are omitted. If the actor steps decrease from one session of
  the run to the next, the run resumed from a checkpoint, and earlier rows with
  larger steps are omitted. Within a session the actor steps may decrease,
  because several evaluators write to the log.
  """
  try:
    text = path.read_text(errors='replace')
  except OSError:
    return Log()
  notes: list[str] = []
  whole = text[: text.rfind('\n') + 1]
  if whole != text:
    notes.append('The truncated last row was omitted')
  lines = csv.reader(whole.splitlines())
  header = [metrics.RENAMED_COLUMNS.get(name, name) for name in next(lines, [])]
  rows: list[Row] = []
  num_damaged = num_repeated = 0
  for line in lines:
    row = _parsed(header, line)
    if row is None:
      num_damaged += 1
      continue
    while rows and _is_repeated(rows[-1], row):
      rows.pop()
      num_repeated += 1
    rows.append(row)
  if num_damaged:
    notes.append(f'{_rows(num_damaged, "damaged")} omitted')
  if num_repeated:
    notes.append(f'{_rows(num_repeated, "repeated")} omitted')
  rows.sort(key=lambda row: row[_STEPS])
  return Log(tuple(rows), tuple(notes))


def evaluations(run_id: str, rows: Sequence[Row]) -> list[dataset.Score]:
  """Returns a score for each evaluation step of a run.

  If two sessions evaluated the same step, the later session counts.
  """
  groups: dict[float, list[Row]] = {}
  for row in rows:
    point = row.get(evaluation_schedule.POINT, row[_STEPS])
    groups.setdefault(point, []).append(row)
  return [
    score(run_id, _of_last_session(group), dataset.EVALUATOR, int(point))
    for point, group in sorted(groups.items())
  ]


def binned(
  run_id: str, rows: Sequence[Row], budget_steps: int, num_bins: int
) -> list[dataset.Score]:
  """Returns scores of the training episodes in equal parts of the budget.

  The actor steps of a score are those at the end of its part. Episodes that end
  after the budget, during the last vector step, belong to the last part.
  """
  groups: dict[int, list[Row]] = {}
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
  """Returns the score over a group of episodes."""
  returns = np.array([row['episode_return'] for row in rows], np.float64)
  means: dict[str, Any] = {}
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


def _rows(number: int, kind: str) -> str:
  return f'1 {kind} row was' if number == 1 else f'{number} {kind} rows were'


def _is_repeated(before: Row, row: Row) -> bool:
  """Returns whether the session of `row` repeated the steps of `before`."""
  falls = before[_STEPS] > row[_STEPS]
  if _SESSION in before and _SESSION in row:
    return falls and before[_SESSION] < row[_SESSION]
  return falls


def _of_last_session(rows: Sequence[Row]) -> list[Row]:
  last = max(row.get(_SESSION, 0) for row in rows)
  return [row for row in rows if row.get(_SESSION, 0) == last]


def _parsed(header: Sequence[str], line: Sequence[str]) -> Any:
  """Returns the numbers of a line by column; None for a damaged line."""
  if len(line) != len(header):
    return None
  row: Row = {}
  for name, cell in zip(header, line, strict=True):
    with contextlib.suppress(ValueError):
      row[name] = float(cell)
  return row if {_STEPS, 'episode_return'} <= set(row) else None
