"""Converts the workdirs of runs into the two tables of `dataset`.

The logs of runs that are running, killed or resumed are also read.
"""

import collections
import contextlib
import csv
import itertools
import pathlib
from typing import Any, Sequence

import numpy as np

from bt_acme.runtime import evaluation_schedule, metrics, provenance
from experiments.harness import dataset, records, runs

# Number of parts of the budget; training episodes are averaged in each part.
_NUM_BINS = 200
# Minimum number of episodes behind a final score.
FINAL_EPISODES = 50
_LACKS_FINAL = f'No final evaluation of {FINAL_EPISODES} episodes'

Row = dict[str, float]
_STEPS, _SESSION = 'actor_steps', 'session'
# Maps the averages of `dataset.Score` to the columns of logs.
_MEANS = {
  'length_mean': 'episode_length',
  'greedy_extra_share': 'greedy_extra_share',
  'flight_share': 'flight_share',
  'cells': 'cells',
  'intrinsic_return': 'intrinsic_return',
}


def gather(
  folder: pathlib.Path, specs: Sequence[runs.RunSpec], scale: str
) -> tuple[dataset.Dataset, tuple[str, ...]]:
  """Collects the results of runs.

  Args:
    folder: the directory of all runs.
    specs: the requested runs, including final evaluations.
    scale: the name of the scale.

  Returns:
    The dataset, with a row for each requested run, done or not, and a sentence
    for each failed run and each kind of missing or omitted data.
  """
  finals = {
    spec.needs[0].run.id: spec
    for spec in specs
    if spec.stage == runs.FINAL_EVALUATION
  }
  rows: list[dataset.RunRow] = []
  scores: list[dataset.Score] = []
  problems: list[dataset.Problem] = []
  missing: list[dataset.Problem] = []
  failures: list[str] = []
  for spec in specs:
    status = records.status_of(folder, spec)
    if status == dataset.FAILED:
      failures.append(records.failure(folder, spec))
    if spec.stage == runs.FINAL_EVALUATION:
      continue
    measured, notes = _scores(folder, spec, finals.get(spec.id))
    columns = _columns(folder, spec, status, measured)
    rows.append(dataset.RunRow(scale=scale, **columns))
    scores += measured
    problems += [dataset.Problem(note, spec.id) for note in notes]
    is_complete = status == dataset.DONE and (
      spec.stage == runs.PRETRAINING
      or any(score.source == dataset.FINAL for score in measured)
    )
    if not is_complete and status != dataset.FAILED:
      missing.append(dataset.problem_of(rows[-1], _LACKS_FINAL))
  data = dataset.Dataset(tuple(rows), tuple(scores))
  return data, (*failures, *dataset.sentences([*problems, *missing]))


def _scores(
  folder: pathlib.Path, spec: runs.RunSpec, final: Any
) -> tuple[list[dataset.Score], list[str]]:
  """Returns the scores of a run, and notes about its logs."""
  if spec.is_evaluation:
    played, notes = read_log(folder / spec.episodes_file)
    return _final(spec, played), notes
  rows: dict[str, list[Row]] = {}
  notes = []
  for label in ('actor', 'evaluator'):
    path = folder / spec.workdir / 'logs' / label / 'logs.csv'
    rows[label], omitted = read_log(path)
    notes += [f'{note} from the {label} log' for note in omitted]
  evaluated = evaluations(spec.id, rows['evaluator'])
  training = binned(spec.id, rows['actor'], spec.budget_steps, _NUM_BINS)
  played = read_log(folder / final.episodes_file)[0] if final else []
  after = _final(spec, played)
  if not after and spec.is_done(folder):
    after = [
      last._replace(source=dataset.FINAL)
      for last in evaluated[-1:]
      if last.actor_steps >= spec.budget_steps
      and last.episodes >= FINAL_EPISODES
    ]
  return [*evaluated, *training, *after], notes


def _final(spec: runs.RunSpec, rows: Sequence[Row]) -> list[dataset.Score]:
  if not rows:
    return []
  return [score(spec.id, rows, dataset.FINAL, spec.budget_steps)]


def _columns(
  folder: pathlib.Path,
  spec: runs.RunSpec,
  status: str,
  scores: Sequence[dataset.Score],
) -> dict[str, Any]:
  """Returns the columns of a run that do not depend on the scale."""
  values = {**vars(spec), **records.read(folder, spec)._asdict()}
  columns = {k: v for k, v in values.items() if k in dataset.RunRow._fields}
  if spec.needs:
    used = spec.needs[0]
    columns['pretraining_run'] = used.run.id
    columns['pretraining_steps'] = used.actor_steps or used.run.budget_steps
  steps = max((score.actor_steps for score in scores), default=0)
  return {
    **columns,
    'run_id': spec.id,
    'frames_per_step': runs.frames_per_step(spec.env),
    'status': status,
    'actor_steps': spec.budget_steps if status == dataset.DONE else steps,
    'command': spec.command,
    **_provenance(folder, spec),
  }


def _provenance(folder: pathlib.Path, spec: runs.RunSpec) -> dict[str, Any]:
  """Returns the columns of a run that its provenance file provides.

  Its seconds include attempts whose worker was killed.
  """
  try:
    session = provenance.read(str(folder / spec.workdir))['sessions'][-1]
  except (ValueError, KeyError, IndexError):
    return {}  # Evaluations do not record their provenance.
  changed = ', changed' if session.get('dirty') else ''
  found = {
    'commit': f'{session.get("commit") or ""}{changed}',
    'device': session.get('device') or '',
  }
  seconds = provenance.seconds_until_end(session)
  return found if seconds is None else {**found, 'seconds': seconds}


def read_log(path: pathlib.Path) -> tuple[list[Row], list[str]]:
  """Reads a log of episodes; a missing log is empty.

  Truncated rows are omitted. If the actor steps decrease from one session of
  the run to the next, the run resumed from a checkpoint, and earlier rows with
  larger steps are omitted. Within a session the actor steps may decrease,
  because several evaluators write to the log.

  Returns:
    The episodes, sorted by actor steps, and descriptions of omitted rows.
  """
  try:
    text = path.read_text(errors='replace')
  except OSError:
    return [], []
  notes: list[str] = []
  whole = text[: text.rfind('\n') + 1]
  if whole != text:
    notes.append('The truncated last row was omitted')
  lines = csv.reader(whole.splitlines())
  header = [metrics.RENAMED_COLUMNS.get(name, name) for name in next(lines, [])]
  rows: list[Row] = []
  omitted = collections.Counter[str]()
  for line in lines:
    row = _parsed(header, line)
    if row is None:
      omitted['damaged'] += 1
      continue
    while rows and _is_repeated(rows[-1], row):
      rows.pop()
      omitted['repeated'] += 1
    rows.append(row)
  for kind, number in sorted(omitted.items()):
    were = 'row was' if number == 1 else 'rows were'
    notes.append(f'{number} {kind} {were} omitted')
  rows.sort(key=lambda row: row[_STEPS])
  return rows, notes


def evaluations(run_id: str, rows: Sequence[Row]) -> list[dataset.Score]:
  """Returns a score for each evaluation step of a run.

  If two sessions evaluated the same step, the later session counts.
  """

  def point_of(row: Row) -> float:
    return row.get(evaluation_schedule.POINT, row[_STEPS])

  groups = itertools.groupby(sorted(rows, key=point_of), point_of)
  return [
    score(run_id, _of_last_session(list(group)), dataset.EVALUATOR, int(point))
    for point, group in groups
  ]


def binned(
  run_id: str, rows: Sequence[Row], budget_steps: int, num_bins: int
) -> list[dataset.Score]:
  """Returns scores of the training episodes in equal parts of the budget.

  The actor steps of a score are those at the end of its part. Episodes that end
  after the budget, during the last vector step, belong to the last part.
  """

  def part_of(row: Row) -> int:
    part = int(np.ceil(row[_STEPS] * num_bins / budget_steps))
    return min(max(part, 1), num_bins)

  groups = itertools.groupby(sorted(rows, key=part_of), part_of)
  return [
    score(run_id, list(group), dataset.ACTOR, part * budget_steps // num_bins)
    for part, group in groups
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
