"""Converts the workdirs of runs into the two tables of `dataset`."""

import pathlib
from typing import Any, Callable, Iterable, Iterator, Sequence

from bt_acme.runtime import provenance
from experiments.harness import dataset, diagnosis, logs, records, runs

# Number of parts of the budget; training episodes are averaged in each part.
_NUM_BINS = 200
# Minimum number of episodes behind a final score.
FINAL_EPISODES = 50


def gather(
  folder: pathlib.Path,
  specs: Sequence[runs.RunSpec],
  *,
  scale: str,
  frames_per_step: Callable[[str], int],
) -> tuple[dataset.Dataset, tuple[str, ...]]:
  """Collects the results of runs.

  Args:
    folder: the directory of all runs.
    specs: the requested runs, including final evaluations.
    scale: the name of the scale.
    frames_per_step: maps an environment to its frames per actor step.

  Returns:
    The dataset, with a row for each requested run, done or not, and a sentence
    for each failed run and each kind of missing or omitted data.
  """
  finals = {
    spec.needs[0].run.id: spec
    for spec in specs
    if spec.stage == runs.FINAL_EVALUATION
  }
  found = [spec for spec in specs if spec.stage != runs.FINAL_EVALUATION]
  rows: list[dataset.RunRow] = []
  scores: list[dataset.Score] = []
  problems: list[diagnosis.Problem] = []
  for spec in found:
    measured, notes = _scores(folder, spec, finals.get(spec.id))
    run = _run(folder, spec, scale, frames_per_step(spec.env), measured)
    rows.append(run)
    scores += measured
    problems += [diagnosis.Problem(note, spec.id) for note in notes]
  problems += _missing(
    rows, {s.run_id for s in scores if s.source == dataset.FINAL}
  )
  failures = [
    records.failure(folder, spec)
    for spec in specs
    if records.status_of(folder, spec) == dataset.FAILED
  ]
  data = dataset.Dataset(tuple(rows), tuple(scores))
  return data, (*failures, *diagnosis.sentences(problems))


def _scores(
  folder: pathlib.Path, spec: runs.RunSpec, final: Any
) -> tuple[list[dataset.Score], list[str]]:
  """Returns the scores of a run, and notes about its logs."""
  if spec.is_evaluation:
    episodes = logs.read(folder / spec.episodes_file)
    return _final(spec, episodes.rows, 0), list(episodes.notes)
  notes: list[str] = []
  rows: dict[str, tuple[logs.Row, ...]] = {}
  for label in ('actor', 'evaluator'):
    log = logs.read(folder / spec.workdir / 'logs' / label / 'logs.csv')
    rows[label] = log.rows
    notes += [f'{note} from the {label} log' for note in log.notes]
  evaluations = logs.evaluations(spec.id, rows['evaluator'])
  training = logs.binned(spec.id, rows['actor'], spec.budget_steps, _NUM_BINS)
  played: tuple[logs.Row, ...] = ()
  if final is not None:
    played = logs.read(folder / final.episodes_file).rows
  after = _final(spec, played, spec.budget_steps)
  if not after and spec.is_done(folder):
    after = [
      score._replace(source=dataset.FINAL)
      for score in evaluations[-1:]
      if score.actor_steps >= spec.budget_steps
      and score.episodes >= FINAL_EPISODES
    ]
  return [*evaluations, *training, *after], notes


def _final(
  spec: runs.RunSpec, rows: Sequence[logs.Row], actor_steps: int
) -> list[dataset.Score]:
  if not rows:
    return []
  return [logs.score(spec.id, rows, dataset.FINAL, actor_steps)]


def _run(
  folder: pathlib.Path,
  spec: runs.RunSpec,
  scale: str,
  frames_per_step: int,
  scores: Sequence[dataset.Score],
) -> dataset.RunRow:
  record = records.read(folder, spec)._asdict().items()
  columns = {k: v for k, v in record if k in dataset.RunRow._fields}
  status = records.status_of(folder, spec)
  used = spec.needs[0] if spec.needs else None
  steps = max((score.actor_steps for score in scores), default=0)
  return dataset.RunRow(
    run_id=spec.id,
    scale=scale,
    stage=spec.stage,
    arm=spec.arm,
    env=spec.env,
    seed=spec.seed,
    budget_steps=spec.budget_steps,
    frames_per_step=frames_per_step,
    pretraining_run=used.run.id if used else '',
    pretraining_steps=(
      used.actor_steps or used.run.budget_steps if used else 0
    ),
    status=status,
    actor_steps=spec.budget_steps if status == dataset.DONE else steps,
    command=spec.command,
    **{**columns, **_provenance(folder, spec)},
  )


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


def _missing(
  rows: Iterable[dataset.RunRow], final: set[str]
) -> Iterator[diagnosis.Problem]:
  """Yields the runs that lack a final score, except failed runs."""
  lacks_final = f'No final evaluation of {FINAL_EPISODES} episodes'
  for run in rows:
    is_complete = run.stage == runs.PRETRAINING or run.run_id in final
    if run.status == dataset.FAILED or (
      run.status == dataset.DONE and is_complete
    ):
      continue
    yield diagnosis.of_run(run, lacks_final)
