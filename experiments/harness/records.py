"""What became of each run: kept beside its claim, as JSON.

The queue's folder has, for each run, `ID.claim` while a worker has it,
`ID.json` with what came of the attempts, and `ID.log` with what the last
attempt printed.
"""

import csv
import json
import pathlib
from typing import NamedTuple, Tuple

from bt_acme import files
from bt_acme.behaviors import exported_folder
from bt_acme.config import run as run_config
from bt_acme.runtime import workdir as workdir_lib
from experiments.harness import claiming, dataset, runs

# A run that fails as often is not started again.
MOST_FAILURES = 3
_TAIL_LINES = 40


class Record(NamedTuple):
  """The attempts at a run.

  Attributes:
    attempts: how often it was started.
    failures: how often it ended by an error.
    exit_code: of the last attempt that ended; -1 if none did.
    seconds: of all attempts.
    host: the machine of the last one.
    started: the time of the first one, ISO 8601.
    ended: the time of the last one's end, ISO 8601.
    tail: the last lines that a failed attempt printed.
  """

  attempts: int = 0
  failures: int = 0
  exit_code: int = -1
  seconds: float = 0.0
  host: str = ''
  started: str = ''
  ended: str = ''
  tail: Tuple[str, ...] = ()


def path_of(
  folder: pathlib.Path, spec: runs.RunSpec, kind: str
) -> pathlib.Path:
  """Returns the file of a run: its `claim`, its `json`, or its `log`."""
  return folder / 'queue' / f'{spec.id}.{kind}'


def read(folder: pathlib.Path, spec: runs.RunSpec) -> Record:
  """Reads a record; one that is not there, or is damaged, is empty."""
  try:
    content = json.loads(path_of(folder, spec, 'json').read_text())
    return Record(**{**content, 'tail': tuple(content['tail'])})
  except (OSError, ValueError, KeyError, TypeError):
    return Record()


def write(folder: pathlib.Path, spec: runs.RunSpec, record: Record) -> None:
  """Writes a record."""
  text = json.dumps(record._asdict(), indent=2) + '\n'
  files.write_text(path_of(folder, spec, 'json'), text)


def tail_of_log(folder: pathlib.Path, spec: runs.RunSpec) -> Tuple[str, ...]:
  """Returns the last lines that the last attempt printed."""
  try:
    text = path_of(folder, spec, 'log').read_text(errors='replace')
  except OSError:
    return ()
  return tuple(text.splitlines()[-_TAIL_LINES:])


def status_of(folder: pathlib.Path, spec: runs.RunSpec) -> str:
  """Returns a run's status, one of those of `dataset.Run`."""
  if is_done(folder, spec):
    return dataset.DONE
  if claiming.is_held(path_of(folder, spec, 'claim')):
    return dataset.RUNNING
  if read(folder, spec).failures >= MOST_FAILURES:
    return dataset.FAILED
  return dataset.WAITING


def is_done(folder: pathlib.Path, spec: runs.RunSpec) -> bool:
  """Returns whether a run has used up its budget, and left all that it should.

  Pre-training leaves its policy, and an evaluation its episodes.
  """
  if spec.is_evaluation:
    wanted = dict(spec.settings).get('episodes', 1)
    return _num_rows(folder / spec.episodes_file) >= int(wanted)
  workdir = folder / spec.workdir
  run = run_config.RunConfig(
    workdir=str(workdir), max_actor_steps=spec.budget_steps
  )
  if not workdir_lib.is_completed(run):
    return False
  return spec.stage != runs.PRETRAINING or exported_folder.is_whole(
    run.behavior_folder
  )


def has(folder: pathlib.Path, need: runs.Need) -> bool:
  """Returns whether what a run needs is there."""
  if need.actor_steps:
    return exported_folder.is_whole(str(folder / need.folder))
  return is_done(folder, need.run)


def _num_rows(path: pathlib.Path) -> int:
  try:
    with path.open(newline='') as file:
      return sum(1 for _ in csv.DictReader(file))
  except OSError:
    return 0
