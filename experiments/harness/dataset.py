"""The results of runs as two CSV tables, and descriptions of missing data.

`runs.csv` has a row for each requested run, whether or not it is done, and
`scores.csv` has a row for each measurement of a run. Artifacts (tables and
figures) depend only on these two tables.
"""

import collections
import csv
import pathlib
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar, get_args, get_type_hints

from bt_acme import files
from bt_acme.evaluation import tables

NAN = float('nan')
_EMPTY = {int: 0, float: NAN}  # The numbers that empty cells stand for.

# Values of `RunRow.status`.
DONE, RUNNING, WAITING, FAILED = 'done', 'running', 'waiting', 'failed'
# Values of `Score.source`: an evaluation during training, training episodes
# averaged over a part of the budget, and the evaluation after training.
EVALUATOR, ACTOR, FINAL = 'evaluator', 'actor', 'final'


class RunRow(NamedTuple):
  """One requested run.

  Attributes:
    run_id: identifier of the run, which depends on its settings.
    scale: `smoke`, `laptop`, `gpu` or `paper`.
    stage: `pretraining`, `transfer`, or `zero_shot` for a policy that is only
      evaluated.
    arm: the algorithm, such as `bt_ngu`.
    env: the full name of the environment.
    seed: the seed of the run.
    budget_steps: the requested number of actor steps.
    frames_per_step: frames per actor step.
    pretraining_run: the run_id of the run whose behavior or weights are used;
      empty without one.
    pretraining_steps: the actor steps of pre-training behind that behavior or
      those weights.
    status: one of `DONE`, `RUNNING`, `WAITING`, `FAILED`.
    actor_steps: actor steps taken so far.
    attempts: how many times the run was started.
    exit_code: exit code of the last attempt; -1 if there was none.
    seconds: duration of all attempts.
    host: the machine of the last attempt.
    device: the device of the learner.
    commit: the commit of the code.
    started: start time of the first attempt, ISO 8601.
    ended: end time of the run, ISO 8601.
    command: the command that reproduces the run.
  """

  run_id: str
  scale: str
  stage: str
  arm: str
  env: str
  seed: int
  budget_steps: int
  frames_per_step: int = 1
  pretraining_run: str = ''
  pretraining_steps: int = 0
  status: str = WAITING
  actor_steps: int = 0
  attempts: int = 0
  exit_code: int = -1
  seconds: float = 0.0
  host: str = ''
  device: str = ''
  commit: str = ''
  started: str = ''
  ended: str = ''
  command: str = ''


class Score(NamedTuple):
  """One measurement of a run over several episodes.

  Attributes:
    run_id: identifier of the run.
    source: one of `EVALUATOR`, `ACTOR`, `FINAL`.
    actor_steps: actor steps taken before the measurement.
    episodes: the number of episodes; 0 for scores that were published.
    return_mean: the mean undiscounted return of the task.
    return_std: its standard deviation over the episodes (ddof 0).
    length_mean: mean actor steps per episode.
    greedy_extra_share: the share of greedy decisions that selected the extra
      action.
    flight_share: the share of steps within flights.
    cells: cells visited per episode of evaluations by `launch/evaluate.py`, if
      the environment has cells.
    intrinsic_return: the mean intrinsic return.
  """

  run_id: str
  source: str
  actor_steps: int
  episodes: int
  return_mean: float
  return_std: float = NAN
  length_mean: float = NAN
  greedy_extra_share: float = NAN
  flight_share: float = NAN
  cells: float = NAN
  intrinsic_return: float = NAN


class Dataset(NamedTuple):
  """All runs and scores, in file order."""

  runs: tuple[RunRow, ...]
  scores: tuple[Score, ...]


Row = TypeVar('Row')


def read(folder: files.PathLike) -> Dataset:
  """Reads both tables of a directory.

  Raises:
    ValueError: if a table is missing or cannot be parsed.
  """
  folder = pathlib.Path(folder)
  return Dataset(
    read_rows(folder / 'runs.csv', RunRow),
    read_rows(folder / 'scores.csv', Score),
  )


def write(folder: files.PathLike, dataset: Dataset) -> None:
  """Writes both tables, each atomically."""
  folder = pathlib.Path(folder)
  for name, rows, header in (
    ('runs.csv', dataset.runs, RunRow._fields),
    ('scores.csv', dataset.scores, Score._fields),
  ):
    text = tables.csv_text([row._asdict() for row in rows], 10, header)
    files.write_text(folder / name, text)


def read_rows(path: pathlib.Path, row_type: type[Row]) -> tuple[Row, ...]:
  """Reads a CSV file, converting each cell to the type of its column.

  Lines that start with `#` are comments. An empty cell is 0 or NaN if the type
  is a number. `1` is True, and a tuple consists of words.

  Args:
    path: the path of the file.
    row_type: a NamedTuple with a field for each required column.

  Raises:
    ValueError: if the file is missing, lacks a column, or has a cell that
      cannot be parsed.
  """
  types = get_type_hints(row_type)
  rows: list[Row] = []
  try:
    with path.open(newline='') as file:
      lines = csv.DictReader(line for line in file if not line.startswith('#'))
      missing = set(types) - set(lines.fieldnames or ())
      if missing:
        raise ValueError(f'missing columns {", ".join(sorted(missing))}')
      for line in lines:
        rows.append(
          row_type(**{k: _value(line[k], t) for k, t in types.items()})
        )
  except (OSError, TypeError, ValueError, csv.Error) as error:
    raise ValueError(
      f'{path} cannot be read after {len(rows)} rows: {error}. Run `gather` to '
      'write the file.'
    ) from error
  return tuple(rows)


def _value(text: str | None, value_type: Any) -> Any:
  if text is None:
    raise ValueError('the next row is truncated')
  if get_args(value_type):  # A tuple.
    return tuple(map(get_args(value_type)[0], text.split()))
  if value_type is bool:
    return text == '1'
  return value_type(text or _EMPTY.get(value_type, ''))


# Missing data: a description, and the affected run or environment.
Problem = tuple[str, str]


def problem_of(run: RunRow, done: str) -> Problem:
  """Describes why a run lacks a result.

  Args:
    run: the run.
    done: the description for a run that is done.
  """
  what = {DONE: done, FAILED: f'Failed with exit code {run.exit_code}'}
  return what.get(run.status, f'Not done ({run.status})'), run.run_id


def sentences(problems: Iterable[Problem], most: int = 10) -> tuple[str, ...]:
  """Returns a sentence per kind of problem, with at most `most` names each."""
  names: dict[str, list[str]] = collections.defaultdict(list)
  for what, name in dict.fromkeys(problems):
    names[what].append(name)
  return tuple(
    f'{what}: {", ".join(found[:most])}'
    + (f' and {len(found) - most} more.' if len(found) > most else '.')
    for what, found in names.items()
  )
