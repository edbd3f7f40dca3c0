"""Converts the workdirs of runs into the two tables of `dataset`."""

import collections
import datetime
import pathlib
from typing import (
  Any,
  Callable,
  Dict,
  Iterable,
  List,
  Sequence,
  Set,
  Tuple,
)

from bt_acme.runtime import provenance
from experiments.harness import dataset, logs, records, runs

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
) -> Tuple[dataset.Dataset, Tuple[str, ...]]:
  """Collects the results of runs.

  Args:
    folder: the directory of all runs.
    specs: the requested runs, including final evaluations.
    scale: the name of the scale.
    frames_per_step: maps an environment to its frames per actor step.

  Returns:
    The dataset, with a row for each requested run, done or not, and a sentence
    for each kind of missing or omitted data, with the names of the runs.
  """
  finals = {
    spec.needs[0].run.id: spec
    for spec in specs
    if spec.stage == runs.FINAL_EVALUATION
  }
  found = [spec for spec in specs if spec.stage != runs.FINAL_EVALUATION]
  rows: List[dataset.RunRow] = []
  scores: List[dataset.Score] = []
  diagnoses: List[str] = []
  for spec in found:
    measured, notes = _scores(folder, spec, finals.get(spec.id))
    run = _run(folder, spec, scale, frames_per_step(spec.env), measured)
    rows.append(run)
    scores += measured
    diagnoses += [f'{spec.id}: {note}.' for note in notes]
  diagnoses += _failures(folder, specs)
  diagnoses += _missing(rows)
  final_ids = {s.run_id for s in scores if s.source == dataset.FINAL}
  diagnoses += _unmeasured(rows, final_ids)
  diagnoses += _ragged(rows, final_ids)
  return dataset.Dataset(tuple(rows), tuple(scores)), tuple(diagnoses)


def _scores(
  folder: pathlib.Path, spec: runs.RunSpec, final: Any
) -> Tuple[List[dataset.Score], List[str]]:
  """Returns the scores of a run, and notes about its logs."""
  if spec.is_evaluation:
    episodes = logs.read(folder / spec.episodes_file)
    return _final(spec, episodes.rows, 0), list(episodes.notes)
  notes: List[str] = []
  rows: Dict[str, Tuple[logs.Row, ...]] = {}
  for label in ('actor', 'evaluator'):
    log = logs.read(folder / spec.workdir / 'logs' / label / 'logs.csv')
    rows[label] = log.rows
    notes += [f'in the log of the {label}, {note}' for note in log.notes]
  evaluations = logs.evaluations(spec.id, rows['evaluator'])
  training = logs.binned(spec.id, rows['actor'], spec.budget_steps, _NUM_BINS)
  played: Tuple[logs.Row, ...] = ()
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
) -> List[dataset.Score]:
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
  record = records.read(folder, spec)
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
    attempts=record.attempts,
    exit_code=record.exit_code,
    host=record.host,
    started=record.started,
    ended=record.ended,
    command=spec.command,
    **{'seconds': record.seconds, **_provenance(folder, spec)},
  )


def _provenance(folder: pathlib.Path, spec: runs.RunSpec) -> Dict[str, Any]:
  """Returns the recorded columns of a run's last session.

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
  if session.get('ended'):
    begin, end = (
      datetime.datetime.fromisoformat(session[name])
      for name in ('started', 'ended')
    )
    found['seconds'] = session['seconds_before'] + (end - begin).total_seconds()
  return found


def _failures(folder: pathlib.Path, specs: Iterable[runs.RunSpec]) -> List[str]:
  """Describes the failed runs and the failed final evaluations."""
  return [
    records.failure(folder, spec)
    for spec in specs
    if records.status_of(folder, spec) == dataset.FAILED
  ]


def _missing(rows: Iterable[dataset.RunRow]) -> List[str]:
  """Lists unfinished runs by status."""
  by_status: Dict[str, List[str]] = collections.defaultdict(list)
  for run in rows:
    by_status[run.status].append(run.run_id)
  return [
    f'{len(by_status[status])} runs are {status}: '
    f'{", ".join(by_status[status])}.'
    for status in (dataset.RUNNING, dataset.WAITING)
    if by_status[status]
  ]


def _unmeasured(rows: Iterable[dataset.RunRow], final: Set[str]) -> List[str]:
  """Lists finished runs that lack a final score."""
  found = [
    run.run_id
    for run in rows
    if run.stage != runs.PRETRAINING
    and run.status == dataset.DONE
    and run.run_id not in final
  ]
  if not found:
    return []
  return [
    f'{len(found)} runs are done but lack a final evaluation of '
    f'{FINAL_EPISODES} episodes: {", ".join(found)}.'
  ]


def _ragged(rows: Sequence[dataset.RunRow], final: Set[str]) -> List[str]:
  """Lists seeds that lack a final score although other arms have one.

  An artifact compares arms over the seeds that they have in common.
  """
  wanted: Dict[str, Set[int]] = collections.defaultdict(set)
  there: Dict[Tuple[str, str, str, int], Set[int]] = {}
  for run in rows:
    if run.stage == runs.PRETRAINING:
      continue
    key = (run.env, run.stage, run.arm, run.pretraining_steps)
    seeds = there.setdefault(key, set())
    if run.run_id in final:
      seeds.add(run.seed)
      wanted[run.env].add(run.seed)
  found = []
  for (env, _, arm, steps), seeds in there.items():
    lacking = sorted(wanted[env] - seeds)
    if lacking:
      after = f' after {steps:,} steps of pre-training' if steps else ''
      found.append(
        f'{arm} on {env}{after} has no final score of seed '
        f'{", ".join(map(str, lacking))}, which other arms have.'
      )
  return found
