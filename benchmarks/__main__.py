"""Runs benchmarks, each in its own process, and prints one table.

python -m benchmarks                     # All benchmarks.
python -m benchmarks actor bt --rounds 9
python -m benchmarks --list
"""

import argparse
import functools
import importlib
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any

import jax

from benchmarks import harness
from benchmarks.catalog import BENCHMARKS

_FOLDER = pathlib.Path(__file__).parent
_RESULTS = _FOLDER / 'results.json'
_README = _FOLDER / 'README.md'
_MAX_OUTPUT = 4_000  # Maximum number of characters shown for a failure.
_MARK = '<!-- results -->\n'


def _run_here(name: str, options: argparse.Namespace) -> dict[str, Any]:
  """Pins this process and runs a benchmark; JAX must not have run yet."""
  benchmark = BENCHMARKS[name]
  os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: benchmark.cores])
  os.environ.update(benchmark.environment())
  jax.config.update('jax_platforms', 'cpu')  # JAX has read its variables.
  jax.config.update('jax_enable_compilation_cache', False)
  if options.cpu_time:
    harness.clock = time.process_time
  if options.quick:
    harness.quick, harness.round_seconds = True, 0.2
  module = importlib.import_module(f'benchmarks.{benchmark.module}')
  comparisons = getattr(module, name.replace('-', '_'))()
  rows = [harness.measure(one, options.rounds) for one in comparisons]
  return {name: {'machine': harness.machine(), 'rows': rows}}


def _run_apart(name: str, options: argparse.Namespace) -> dict[str, Any]:
  """Runs a benchmark in its own process; returns no results on failure."""
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
    results = {} if done.returncode else json.loads(path.read_text())
  if not results:
    print(done.stdout[-_MAX_OUTPUT:], file=sys.stderr)
  rows = results[name]['rows'] if results else []
  ratios = [f'{row["ratio"]:.2f}x' for row in rows if row.get('ratio')]
  print(f'{time.monotonic() - start:.0f} s', *ratios, file=sys.stderr)
  return results


def _table(results: dict[str, Any]) -> str:
  """Formats all results in the order of `BENCHMARKS`."""
  ordered = [results[name]['rows'] for name in BENCHMARKS if name in results]
  return harness.format_rows(list(itertools.chain(*ordered)))


def _save(results: dict[str, Any]) -> None:
  """Saves results to results.json and, below the marker line, to README.md."""
  results = {**json.loads(_RESULTS.read_text()), **results}
  harness.write_json(results, _RESULTS)
  machines = {
    f'{m["cpu"]}, {m["cores"]} cores, {m["memory_gb"]} GB, '
    f'Python {m["python"]}, {m["date"]}'
    for m in (result['machine'] for result in results.values())
  }
  text = _README.read_text().split(_MARK)[0]
  made = f'{"; ".join(sorted(machines))}.'
  _README.write_text(f'{text}{_MARK}\n{made}\n\n{_table(results)}\n')


def _parse() -> argparse.Namespace:
  """Parses the command line; `names` is never empty."""
  parser = argparse.ArgumentParser(
    prog='python -m benchmarks',
    description='Compares bt_acme with dm-acme 0.4.0 and with hardware limits.',
  )
  add = parser.add_argument
  switch = functools.partial(add, action='store_true')
  add('names', nargs='*', help='benchmarks (default: all)')
  add('--rounds', type=int, default=5, help='number of rounds (default: 5)')
  add('--json', type=pathlib.Path, help='output file for the results')
  switch('--list', help='list the benchmarks and exit')
  switch('--quick', help='use small sizes; the numbers are meaningless')
  switch('--cpu-time', help='measure processor time, for busy machines')
  switch('--save', help='save the results to benchmarks/README.md and .json')
  switch('--here', help='run one benchmark in this process, for profilers')
  options = harness.parse(parser)
  options.names = options.names or list(BENCHMARKS)
  if unknown := sorted(set(options.names) - set(BENCHMARKS)):
    parser.error(
      f'unknown benchmarks {unknown}. Choose from {list(BENCHMARKS)}.'
    )
  if options.quick and options.save:
    parser.error('--save would publish the meaningless numbers of --quick')
  if options.here and not options.list and len(options.names) != 1:
    parser.error(
      '--here takes one benchmark, because each needs its own process'
    )
  return options


def main() -> int:
  """Runs the command line; returns 1 if a benchmark failed, else 0."""
  options = _parse()
  if options.list:
    for name, benchmark in BENCHMARKS.items():
      print(f'{name:14} {benchmark.about}')
    return 0
  run = _run_here if options.here else _run_apart
  results: dict[str, Any] = {}
  for name in options.names:
    results.update(run(name, options))
  print(_table(results))
  if options.json:
    harness.write_json(results, options.json)
  if options.save:
    _save(results)
  if failed := [name for name in options.names if name not in results]:
    print(f'Failed: {", ".join(failed)}', file=sys.stderr)
    return 1
  return 0


if __name__ == '__main__':
  sys.exit(main())
