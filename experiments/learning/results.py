"""Results of runs: a table with a row for each run and seed, as CSV."""

import csv
import dataclasses
import functools
import hashlib
import io
import json
import pathlib
from typing import (
  Any,
  ClassVar,
  Dict,
  Iterable,
  List,
  Mapping,
  Sequence,
  Tuple,
)

from bt_acme import config as config_lib
from bt_acme import files
from experiments.learning import claims, execution

# The results that are kept with the code.
PUBLISHED = pathlib.Path(__file__).with_name('results.csv')

_KEYS = ('world', 'algorithm', 'actor_steps', 'seed', 'settings')
_VALUES = (
  *('solved', 'return', 'length', 'cells', 'extra_action'),
  *('training_solved', 'training_return'),
  *('cells_25', 'cells_50', 'cells_75', 'seconds'),
)


@dataclasses.dataclass(frozen=True)
class Job:
  """A run with its seed, which the harness executes."""

  run: claims.Run
  seed: int

  is_evaluation: ClassVar[bool] = False  # Cores are good for all.

  def __str__(self) -> str:
    return f'{self.run.algorithm} on {self.run.world}, seed {self.seed}'

  @property
  def id(self) -> str:
    """Its name with the hash of its settings."""
    return f'{self.run.name(self.seed)}-{_keys(self)[-1]}'

  @property
  def needed(self) -> List['Job']:
    """The run that it builds on, if it does on one."""
    return [Job(self.run.behavior, self.seed)] if self.run.behavior else []

  def is_ready(self, folder: pathlib.Path) -> bool:
    """Returns whether the behavior is there that it needs."""
    return all(_behavior(job, folder).exists() for job in self.needed)

  def is_done(self, folder: pathlib.Path) -> bool:
    """Returns whether it has left its result here, and its behavior."""
    return _table(self, folder).exists() and (
      self.run.kind != 'ngu' or _behavior(self, folder).exists()
    )

  def execute(self, folder: pathlib.Path, report: Any) -> None:
    """Executes the run, in the process that calls."""
    del report
    row = execution.execute(self.run, self.seed, folder / 'behaviors')
    add({self: row}, _table(self, folder))


Results = Mapping[Job, execution.Row]
_Lines = Dict[Tuple[str, ...], Dict[str, str]]  # Lines by their keys.


def jobs(tables: Sequence[claims.Table]) -> List[Job]:
  """Returns the runs of tables, each once; all first seeds come first."""
  last = max((len(table.seeds) for table in tables), default=0)
  return list(
    dict.fromkeys(
      Job(run, table.seeds[i])
      for i in range(last)
      for table in tables
      if i < len(table.seeds)
      for run in table.runs
    )
  )


def tables(folder: pathlib.Path) -> List[pathlib.Path]:
  """Returns the tables with results: the published one, and a folder's.

  Each run leaves a table of its own, so that any number of workers may add to
  a folder; `results.csv` is of a time when they could not.
  """
  return [
    *(PUBLISHED, folder / 'results.csv'),
    *sorted((folder / 'results').glob('*.csv')),
  ]


def read(jobs: Iterable[Job], paths: Iterable[pathlib.Path]) -> Results:
  """Reads what there is of these runs; later files win.

  Results of other settings, and of a behavior with other settings, are left
  out. The code may have changed nevertheless.

  Args:
    jobs: the runs to look for.
    paths: of tables; those that do not exist are empty.
  """
  table: _Lines = {}
  for path in paths:
    table.update(_read(path))
  found = {}
  for job in jobs:
    line = table.get(_keys(job))
    if line is not None:
      found[job] = {name: float(line[name]) for name in _VALUES if line[name]}
  return found


def add(results: Results, path: pathlib.Path) -> None:
  """Adds results to a table, which is never left half written.

  A line of the same run and seed is replaced, whatever its settings.
  """
  table = _read(path)
  for job, row in results.items():
    keys = _keys(job)
    for other in [k for k in table if k[:2] == keys[:2] and k[3] == keys[3]]:
      del table[other]
    values = {name: f'{row[name]:.6g}' for name in _VALUES if name in row}
    table[keys] = {**dict(zip(_KEYS, keys, strict=True)), **values}
  text = io.StringIO()
  writer = csv.DictWriter(text, (*_KEYS, *_VALUES), lineterminator='\n')
  writer.writeheader()
  for keys in sorted(table, key=lambda k: (k[0], k[1], int(k[3]))):
    writer.writerow(table[keys])
  files.write_text(path, text.getvalue())


def _read(path: pathlib.Path) -> _Lines:
  if not path.exists():
    return {}
  with path.open(newline='') as file:
    lines: List[Dict[str, str]] = list(csv.DictReader(file))
  return {tuple(line[key] for key in _KEYS): line for line in lines}


def _table(job: Job, folder: pathlib.Path) -> pathlib.Path:
  return folder / 'results' / f'{job.id}.csv'


def _behavior(job: Job, folder: pathlib.Path) -> pathlib.Path:
  return execution.behavior_path(job.run, job.seed, folder / 'behaviors')


def _keys(job: Job) -> Tuple[str, ...]:
  run = job.run
  return (
    *(run.world, run.algorithm, str(run.actor_steps), str(job.seed)),
    _hash(run),
  )


@functools.lru_cache(maxsize=None)
def _hash(run: claims.Run) -> str:
  return hashlib.sha256(json.dumps(_identity(run)).encode()).hexdigest()[:8]


def _identity(run: claims.Run) -> Dict[str, Any]:
  """What a result depends on, beside the seed and the code."""
  trains = run.kind not in ('random', 'behavior')
  return {
    'kind': run.kind,
    'world': run.world,
    'actor_steps': run.actor_steps,
    'init': run.init,
    'episodes': execution.NUM_EPISODES,
    'configuration': _changes(run) if trains else {},
    'behavior': _identity(run.behavior) if run.behavior else {},
  }


def _changes(run: claims.Run) -> Dict[str, Any]:
  """The settings that are not the defaults.

  A setting that joins later, with what was done before as its default, leaves
  the results valid.
  """
  config = execution.configuration(run)
  default = config_lib.to_dict(type(config)())
  return {
    f'{group}.{name}': value
    for group, settings in config_lib.to_dict(config).items()
    for name, value in settings.items()
    if value != default[group][name]
  }
