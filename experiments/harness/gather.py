"""Converts the workdirs of runs into the two tables of `dataset`.

The logs of runs that are running or killed are also read. The runtime removes
the rows that a resumed run repeats.
"""

import itertools
import pathlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bt_acme.evaluation import logs, tables
from bt_acme.runtime import evaluation_schedule, provenance
from experiments.harness import dataset, records, runs

# Number of parts of the budget; training episodes are averaged in each part.
_NUM_BINS = 200
# Minimum number of episodes behind a final score.
FINAL_EPISODES = 50
_LACKS_FINAL = f'No final evaluation of {FINAL_EPISODES} episodes'

_STEPS, _RETURN = 'actor_steps', 'episode_return'
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
    for each failed run and each kind of missing data.
  """
  finals = {
    spec.needs[0].run.id: spec
    for spec in specs
    if spec.stage == runs.FINAL_EVALUATION
  }
  rows: list[dataset.RunRow] = []
  scores: list[dataset.Score] = []
  missing: list[dataset.Problem] = []
  failures: list[str] = []
  for spec in specs:
    status = records.status_of(folder, spec)
    if status == dataset.FAILED:
      failures.append(records.failure(folder, spec))
    if spec.stage == runs.FINAL_EVALUATION:
      continue
    measured = _scores(folder, spec, finals.get(spec.id))
    columns = _columns(folder, spec, status, measured)
    rows.append(dataset.RunRow(scale=scale, **columns))
    scores += measured
    is_complete = status == dataset.DONE and (
      spec.stage == runs.PRETRAINING
      or any(score.source == dataset.FINAL for score in measured)
    )
    if not is_complete and status != dataset.FAILED:
      missing.append(dataset.problem_of(rows[-1], _LACKS_FINAL))
  data = dataset.Dataset(tuple(rows), tuple(scores))
  return data, (*failures, *dataset.sentences(missing))


def _scores(
  folder: pathlib.Path, spec: runs.RunSpec, final: Any
) -> list[dataset.Score]:
  """Returns the scores of a run."""
  if spec.is_evaluation:
    return _final(folder, spec, spec)
  played, trained = (
    logs.read_rows(logs.path_of(folder / spec.workdir, label))
    for label in ('evaluator', 'actor')
  )
  evaluated = evaluations(spec.id, played)
  training = binned(spec.id, trained, spec.budget_steps, _NUM_BINS)
  after = _final(folder, spec, final) if final else []
  if not after and spec.is_done(folder):
    after = [
      last._replace(source=dataset.FINAL)
      for last in evaluated[-1:]
      if last.actor_steps >= spec.budget_steps
      and last.episodes >= FINAL_EPISODES
    ]
  return [*evaluated, *training, *after]


def _final(
  folder: pathlib.Path, spec: runs.RunSpec, final: runs.RunSpec
) -> list[dataset.Score]:
  """Returns the score of the episodes that an evaluation has played, if any."""
  path = folder / final.episodes_file
  names = (_RETURN, *_MEANS.values())
  rows = [
    {name: float(row[name]) for name in names if row.get(name)}
    for row in (tables.read_csv(path) if path.exists() else [])
  ]
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


def evaluations(run_id: str, rows: Sequence[logs.Row]) -> list[dataset.Score]:
  """Returns a score for each evaluation step of a run."""

  def point_of(row: logs.Row) -> int:
    return int(row.get(evaluation_schedule.POINT, row.get(_STEPS, 0)))

  return _grouped(run_id, rows, dataset.EVALUATOR, point_of)


def binned(
  run_id: str, rows: Sequence[logs.Row], budget_steps: int, num_bins: int
) -> list[dataset.Score]:
  """Returns scores of the training episodes in equal parts of the budget.

  The actor steps of a score are those at the end of its part. Episodes that end
  after the budget, during the last vector step, belong to the last part.
  """

  def end_of_part(row: logs.Row) -> int:
    part = int(np.ceil(row.get(_STEPS, 0) * num_bins / budget_steps))
    return min(max(part, 1), num_bins) * budget_steps // num_bins

  return _grouped(run_id, rows, dataset.ACTOR, end_of_part)


def _grouped(
  run_id: str,
  rows: Sequence[logs.Row],
  source: str,
  steps_of: Callable[[logs.Row], int],
) -> list[dataset.Score]:
  """Returns a score for each number of actor steps that rows have."""
  groups = itertools.groupby(sorted(rows, key=steps_of), steps_of)
  return [score(run_id, list(g), source, steps) for steps, g in groups]


def score(
  run_id: str, rows: Sequence[logs.Row], source: str, actor_steps: int
) -> dataset.Score:
  """Returns the score over a group of episodes."""
  returns = np.array([row[_RETURN] for row in rows], np.float64)
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
