"""Runs benchmarks, each in a process of its own, and prints one table.

python -m benchmarks                     # All of them.
python -m benchmarks actor bt --rounds 9
python -m benchmarks --list
"""

import argparse
import dataclasses
import importlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any, Dict, List, Optional, Sequence

from benchmarks import harness, tables
from benchmarks.catalog import BENCHMARKS

_FOLDER = pathlib.Path(__file__).parent
_RESULTS = _FOLDER / 'results.json'
_README = _FOLDER / 'README.md'
_MAX_OUTPUT = 4_000  # Characters that are shown of a benchmark that fails.
_MARK = '<!-- results -->\n'


def _run_here(name: str, settings: harness.Settings) -> List[Dict[str, Any]]:
  """Runs a benchmark, pinned, in this process, which must not have JAX yet."""
  benchmark = BENCHMARKS[name]
  missing = dict(harness.HUGE_PAGES.items() - os.environ.items())
  if benchmark.huge_pages and missing:
    # glibc reads the variable only when a process starts.
    command = [sys.executable, '-m', 'benchmarks', *sys.argv[1:]]
    os.execve(sys.executable, command, {**os.environ, **missing})
  os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: benchmark.cores])
  os.environ['JAX_PLATFORMS'] = 'cpu'
  if benchmark.one_thread:
    os.environ.update(harness.ONE_THREAD)
  module = importlib.import_module(f'benchmarks.{benchmark.module}')
  rows = getattr(module, name.replace('-', '_'))(settings)
  return [dataclasses.asdict(row) for row in rows]


def _run_apart(
  name: str, arguments: Sequence[str]
) -> Optional[List[Dict[str, Any]]]:
  """Runs a benchmark in a process of its own; returns None if it failed."""
  print(f'{name} ...', end=' ', file=sys.stderr, flush=True)
  start = time.monotonic()
  with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / 'rows.json'
    done = subprocess.run(
      [sys.executable, '-m', 'benchmarks', name, '--here', *arguments]
      + ['--json', str(path)],
      stdout=subprocess.PIPE,
      stderr=subprocess.STDOUT,
      text=True,
      check=False,
    )
    rows = None
    if not done.returncode and path.is_file():
      rows = tables.read(path)[name]['rows']
  if rows is None:
    print(done.stdout[-_MAX_OUTPUT:], file=sys.stderr)
  ratios = [f'{row["ratio"]:.2f}x' for row in rows or () if row['ratio']]
  seconds = f'{time.monotonic() - start:.0f} s'
  print(seconds, *ratios, file=sys.stderr, flush=True)
  return rows


def _all_rows(results: Dict[str, Any]) -> List[Dict[str, Any]]:
  """The rows of all results, in the order of `BENCHMARKS`."""
  return [row for n in BENCHMARKS if n in results for row in results[n]['rows']]


def _save(results: Dict[str, Any]) -> None:
  """Puts results into results.json, and into README.md after its mark."""
  results = {**tables.read(_RESULTS), **results}
  tables.write(results, _RESULTS)
  machines = {
    f'{m["cpu"]}, {m["cores"]} cores, {m["memory_gb"]} GB, '
    f'Python {m["python"]}, {m["date"]}'
    for m in (result['machine'] for result in results.values())
  }
  text = _README.read_text().split(_MARK)[0]
  table = tables.format_rows(_all_rows(results), markdown=True)
  _README.write_text(
    f'{text}{_MARK}\n{"; ".join(sorted(machines))}.\n\n{table}\n'
  )


def _parser() -> argparse.ArgumentParser:
  parser = argparse.ArgumentParser(
    prog='python -m benchmarks',
    description='Measures bt_acme against dm-acme 0.4.0 and against limits.',
  )
  parser.add_argument(
    'names', nargs='*', metavar='name', help='benchmarks; all by default'
  )
  parser.add_argument(
    '--list', action='store_true', help='lists the benchmarks and stops'
  )
  parser.add_argument(
    '--rounds', type=int, default=5, help='rounds of both sides (default: 5)'
  )
  parser.add_argument(
    '--quick',
    action='store_true',
    help='small sizes, to see that a benchmark runs; the numbers mean nothing',
  )
  parser.add_argument(
    '--cpu-time',
    action='store_true',
    help='measures processor time, for a machine that is not quiet',
  )
  parser.add_argument(
    '--json', type=pathlib.Path, help='file that results are written to'
  )
  parser.add_argument(
    '--save',
    action='store_true',
    help='puts the results into results.json and README.md of this folder',
  )
  parser.add_argument(
    '--here',
    action='store_true',
    help='runs a single benchmark in this process, for profilers',
  )
  return parser


def _parse() -> argparse.Namespace:
  """Parses and checks the command line; `names` is never empty."""
  parser = _parser()
  options = parser.parse_args()
  options.names = options.names or list(BENCHMARKS)
  if unknown := set(options.names) - set(BENCHMARKS):
    parser.error(
      f'no benchmark is called {", ".join(map(repr, sorted(unknown)))}: choose '
      f'from {list(BENCHMARKS)}'
    )
  if options.here and not options.list and len(options.names) != 1:
    parser.error(
      '--here takes one benchmark, because each needs a process of its own'
    )
  return options


def _run_all(
  options: argparse.Namespace,
) -> Dict[str, Optional[List[Dict[str, Any]]]]:
  """Rows by benchmark; None for those that failed."""
  if options.here:
    if options.cpu_time:
      harness.clock = time.process_time
    settings = harness.Settings(
      rounds=options.rounds,
      seconds=0.2 if options.quick else 0.9,
      quick=options.quick,
    )
    return {name: _run_here(name, settings) for name in options.names}
  arguments = [
    f'--rounds={options.rounds}',
    *['--quick'] * options.quick,
    *['--cpu-time'] * options.cpu_time,
  ]
  return {name: _run_apart(name, arguments) for name in options.names}


def main() -> int:
  """Returns an exit code, 1 if a benchmark failed."""
  options = _parse()
  if options.list:
    for name, benchmark in BENCHMARKS.items():
      print(f'{name:14} {benchmark.about}')
    return 0
  all_rows = _run_all(options)
  machine = tables.machine()
  results: Dict[str, Any] = {
    name: {'machine': machine, 'rows': rows}
    for name, rows in all_rows.items()
    if rows is not None
  }
  print(tables.format_rows(_all_rows(results)))
  if options.json:
    tables.write(results, options.json)
  if options.save:
    _save(results)
  if failed := [name for name, rows in all_rows.items() if rows is None]:
    print(f'failed: {", ".join(failed)}', file=sys.stderr)
    return 1
  return 0


if __name__ == '__main__':
  sys.exit(main())
