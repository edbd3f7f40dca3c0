"""Reads and writes results of runs: CSV tables with a row per run and seed."""

import itertools
import pathlib
from collections.abc import Iterable, Mapping, Sequence

from bt_acme import files
from bt_acme.evaluation import tables as tables_lib
from experiments.harness import small_runs
from experiments.learning import claims

# The results that are published with the code.
PUBLISHED = pathlib.Path(__file__).with_name('results.csv')

# The columns that identify a row, the one with the hash of the run's settings,
# and those with its results.
_KEYS = ('world', 'algorithm', 'actor_steps', 'seed')  # english: ok
_SETTINGS = 'settings'
_VALUES = (
  *('solved', 'return', 'length', 'cells', 'extra_action'),
  *('training_solved', 'training_return', 'half_solved'),
  *('cells_25', 'cells_50', 'cells_75', 'seconds'),
)


Results = Mapping[claims.Run, small_runs.Row]
_Lines = dict[tuple[str, ...], dict[str, str]]  # Rows by their keys.


def runs(tables: Sequence[claims.Table]) -> list[claims.Run]:
  """Returns the runs of tables without duplicates, ordered by seed."""
  by_seed = itertools.zip_longest(
    *(
      [run.with_seed(seed) for seed in table.seeds]
      for table in tables
      for run in table.runs
    )
  )
  return list(dict.fromkeys(run for runs in by_seed for run in runs if run))


def of_folder(runs: Iterable[claims.Run], folder: pathlib.Path) -> Results:
  """Reads the existing results of runs, published or in a directory.

  Those in the directory take precedence. Published results may have used other
  behaviors than those that were pre-trained in the directory.
  """
  runs = list(runs)
  found = {run: run.result(folder) for run in runs}
  return {
    **read(runs, PUBLISHED),
    **{run: result['row'] for run, result in found.items() if result},
  }


def read(runs: Iterable[claims.Run], path: pathlib.Path) -> Results:
  """Reads the results of runs from a table.

  Results with other settings, including other settings of the behavior, are
  omitted. Changes of the code are not detected.

  Args:
    runs: the runs to look for.
    path: the path of the table; it has no results if it is missing.
  """
  table = _read(path)
  lines = {run: table.get(_keys(run), {}) for run in runs}
  return {
    run: {name: float(line[name]) for name in _VALUES if line.get(name)}
    for run, line in lines.items()
    if line.get(_SETTINGS) == run.hash
  }


def add(results: Results, path: pathlib.Path) -> None:
  """Adds results to a table and writes the table atomically.

  Rows of the same environment, algorithm, steps and seed are replaced even if
  their settings differ.
  """
  table = _read(path)
  for run, row in results.items():
    keys = _keys(run)
    values = {name: f'{row[name]:.6g}' for name in _VALUES if name in row}
    line = dict(zip(_KEYS, keys, strict=True))
    table[keys] = {**line, _SETTINGS: run.hash, **values}
  ordered = sorted(table, key=lambda k: (*k[:2], int(k[2]), int(k[3])))
  rows = [table[keys] for keys in ordered]
  text = tables_lib.csv_text(rows, header=(*_KEYS, _SETTINGS, *_VALUES))
  files.write_text(path, text)


def _read(path: pathlib.Path) -> _Lines:
  lines = tables_lib.read_csv(path) if path.exists() else []
  return {tuple(line[key] for key in _KEYS): line for line in lines}


def _keys(run: claims.Run) -> tuple[str, ...]:
  return run.env, run.algorithm, str(run.actor_steps), str(run.seed)
