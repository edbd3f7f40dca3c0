"""Runs benchmarks, each in a process of its own, and prints one table.

python -m benchmarks                     # All of them.
python -m benchmarks actor bt --rounds 9
python -m benchmarks --list
"""

import argparse
import functools
import importlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any, Dict, List, Optional

from benchmarks import harness, tables
from benchmarks.catalog import BENCHMARKS

_FOLDER = pathlib.Path(__file__).parent
_RESULTS = _FOLDER / 'results.json'
_README = _FOLDER / 'README.md'
_MAX_OUTPUT = 4_000  # Characters that are shown of a benchmark that fails.
_MARK = '<!-- results -->\n'


def _run_here(name: str, options: argparse.Namespace) -> List[harness.Row]:
  """Runs a benchmark, pinned, in this process, which must not have JAX yet."""
  benchmark = BENCHMARKS[name]
  os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: benchmark.cores])
  os.environ.update(benchmark.environment())
  if options.cpu_time:
    harness.clock = time.process_time
  if options.quick:
    harness.quick, harness.round_seconds = True, 0.2
  module = importlib.import_module(f'benchmarks.{benchmark.module}')
  comparisons = getattr(module, name.replace('-', '_'))()
  return [harness.measure(one, options.rounds) for one in comparisons]


def _run_apart(
  name: str, options: argparse.Namespace
) -> Optional[List[harness.Row]]:
  """Runs a benchmark in a process of its own; returns None if it failed."""
  print(f'{name} ...', end=' ', file=sys.stderr, flush=True)
  start = time.monotonic()
  with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / 'rows.json'
    done = subprocess.run(
      [sys.executable, '-m', 'benchmarks', name, '--here', f'--json={path}']
      + [f'--rounds={options.rounds}']
      + ['--quick'] * options.quick
      + ['--cpu-time'] * options.cpu_time,
      env={**os.environ, **BENCHMARKS[name].environment()},
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
  ratios = [f'{row["ratio"]:.2f}x' for row in rows or () if row.get('ratio')]
  seconds = f'{time.monotonic() - start:.0f} s'
  print(seconds, *ratios, file=sys.stderr, flush=True)
  return rows


def _table(results: Dict[str, Any]) -> str:
  """All results, in the order of `BENCHMARKS`."""
  return tables.format_rows(
    [
      row
      for name in BENCHMARKS
      if name in results
      for row in results[name]['rows']
    ]
  )


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
  made = f'{"; ".join(sorted(machines))}.'
  _README.write_text(f'{text}{_MARK}\n{made}\n\n{_table(results)}\n')


def _benchmark(name: str) -> str:
  if name in BENCHMARKS:
    return name
  raise argparse.ArgumentTypeError(
    f'no benchmark is called {name!r}: choose from {list(BENCHMARKS)}'
  )


def _parse() -> argparse.Namespace:
  """Parses and checks the command line; `names` is never empty."""
  parser = argparse.ArgumentParser(
    prog='python -m benchmarks',
    description='Measures bt_acme against dm-acme 0.4.0 and against limits.',
  )
  add = parser.add_argument
  switch = functools.partial(add, action='store_true')
  add('names', nargs='*', type=_benchmark, help='which ones; all by default')
  add('--rounds', type=int, default=5, help='of both sides (default: 5)')
  add('--json', type=pathlib.Path, help='file that results are written to')
  switch('--list', help='lists the benchmarks and stops')
  switch('--quick', help='small sizes; numbers that mean nothing')
  switch('--cpu-time', help='processor time, if the machine is not quiet')
  switch('--save', help="puts results into this folder's README.md and json")
  switch('--here', help='runs one benchmark in this process, for profilers')
  options = parser.parse_args()
  options.names = options.names or list(BENCHMARKS)
  if options.here and not options.list and len(options.names) != 1:
    parser.error(
      '--here takes one benchmark, because each needs a process of its own'
    )
  return options


def main() -> int:
  """Returns an exit code, 1 if a benchmark failed."""
  options = _parse()
  if options.list:
    for name, benchmark in BENCHMARKS.items():
      print(f'{name:14} {benchmark.about}')
    return 0
  run = _run_here if options.here else _run_apart
  rows = {name: run(name, options) for name in options.names}
  machine = tables.machine()
  results = {
    name: {'machine': machine, 'rows': found}
    for name, found in rows.items()
    if found is not None
  }
  print(_table(results))
  if options.json:
    tables.write(results, options.json)
  if options.save:
    _save(results)
  if failed := [name for name in options.names if name not in results]:
    print(f'failed: {", ".join(failed)}', file=sys.stderr)
    return 1
  return 0


if __name__ == '__main__':
  sys.exit(main())
