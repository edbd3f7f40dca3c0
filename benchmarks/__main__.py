"""Runs benchmarks, each in a process of its own, and prints one table.

python -m benchmarks                     # All of them.
python -m benchmarks actor bt --rounds 9
python -m benchmarks --list
"""

import argparse
import dataclasses
import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any, Dict, List, NamedTuple, Optional

from benchmarks import harness

_FOLDER = pathlib.Path(__file__).parent
_RESULTS = _FOLDER / 'results.json'
_README = _FOLDER / 'README.md'
_OUTPUT = 4_000  # Characters of a benchmark that fails.
_MARK = '<!-- results -->\n'


class Benchmark(NamedTuple):
  """Where a benchmark is and how it runs.

  Attributes:
    module: of this package; the function is named as the benchmark.
    about: one line.
    cores: that it is pinned to.
    one_thread: whether XLA and BLAS get one thread a process.
    huge_pages: whether glibc asks for huge pages, as for our program's learner.
  """

  module: str
  about: str
  cores: int = 1
  one_thread: bool = True
  huge_pages: bool = False


BENCHMARKS = {
  'env': Benchmark('acting', 'stepping Atari, two games and a task'),
  'policy': Benchmark('acting', 'choosing an action'),
  'actor': Benchmark('acting', 'actor loop into Reverb, one core'),
  'actor-ngu': Benchmark('acting', 'the same with the NGU reward'),
  'actor-scale': Benchmark('acting', 'actor processes, 1 to 2 cores', cores=2),
  'bt': Benchmark('acting', 'actor loop of BT against plain R2D2'),
  'adder': Benchmark('replay', 'writing a step to replay'),
  'replay-sample': Benchmark(
    'replay', 'sampling batches of 64 x 160', cores=2, one_thread=False
  ),
  'replay-bytes': Benchmark(
    'replay', 'memory of the server, ten games', cores=2
  ),
  'h2d': Benchmark('replay', 'bytes of a batch to the device, counted'),
  'params': Benchmark('replay', 'bytes of parameters to actors, counted'),
  'knn': Benchmark('knn', 'nearest neighbors against FAISS and NumPy'),
  'lstm': Benchmark(
    'learning', 'LSTM forward and backward, T = 160', huge_pages=True
  ),
  'learner': Benchmark('learning', 'a whole learner step', huge_pages=True),
  'compile': Benchmark(
    'learning', 'time to the first update, T = 80', huge_pages=True
  ),
  'e2e': Benchmark(
    'distributed', 'whole programs on two cores', cores=2, one_thread=False
  ),
}


def _run_here(name: str, settings: harness.Settings) -> List[Dict[str, Any]]:
  """Runs one in this process, pinned; nothing may have loaded JAX before."""
  benchmark = BENCHMARKS[name]
  missing = dict(harness.HUGE_PAGES.items() - os.environ.items())
  if benchmark.huge_pages and missing:
    # glibc reads it when a process starts.
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
  name: str, arguments: List[str]
) -> Optional[List[Dict[str, Any]]]:
  """Runs one in a process of its own; None if it failed."""
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
    if done.returncode or not path.is_file():
      print(done.stdout[-_OUTPUT:], file=sys.stderr)
      return None
    rows: List[Dict[str, Any]] = json.loads(path.read_text())[name]['rows']
    return rows


def _all_rows(results: Dict[str, Any]) -> List[Dict[str, Any]]:
  """In the order of `BENCHMARKS`."""
  return [row for n in BENCHMARKS if n in results for row in results[n]['rows']]


def _write_readme(results: Dict[str, Any]) -> None:
  """Replaces what stands behind the mark."""
  machines = {
    f'{m["cpu"]}, {m["cores"]} cores, {m["memory_gb"]} GB, '
    f'Python {m["python"]}, {m["date"]}'
    for m in (result['machine'] for result in results.values())
  }
  text = _README.read_text().split(_MARK)[0]
  table = harness.table(_all_rows(results), markdown=True)
  _README.write_text(
    f'{text}{_MARK}\n{"; ".join(sorted(machines))}.\n\n{table}\n'
  )


def main() -> int:
  parser = argparse.ArgumentParser(
    prog='python -m benchmarks',
    description='Measures bt_acme against dm-acme 0.4.0 and against floors.',
  )
  parser.add_argument(
    'names', nargs='*', metavar='name', help='benchmarks; all if left out'
  )
  parser.add_argument('--list', action='store_true', help='list them and stop')
  parser.add_argument('--rounds', type=int, default=5, help='of both sides')
  parser.add_argument(
    '--quick', action='store_true', help='small sizes: does it run at all?'
  )
  parser.add_argument(
    '--cpu-time',
    action='store_true',
    help='processor time instead of time, where the machine is not quiet',
  )
  parser.add_argument('--json', type=pathlib.Path, help='write results there')
  parser.add_argument(
    '--save',
    action='store_true',
    help='put the results into results.json and README.md of this folder',
  )
  parser.add_argument(
    '--here',
    action='store_true',
    help='in this process, one benchmark alone: for profilers',
  )
  options = parser.parse_args()
  if options.list:
    for name, benchmark in BENCHMARKS.items():
      print(f'{name:14} {benchmark.about}')
    return 0
  names = options.names or list(BENCHMARKS)
  if unknown := set(names) - set(BENCHMARKS):
    parser.error(
      f'no benchmark is called {", ".join(map(repr, sorted(unknown)))}: choose '
      f'from {list(BENCHMARKS)}'
    )
  if options.here and len(names) != 1:
    parser.error('--here takes one benchmark: each needs a process of its own')
  settings = harness.Settings(
    rounds=options.rounds,
    seconds=0.2 if options.quick else 0.9,
    quick=options.quick,
  )
  arguments = [
    f'--rounds={options.rounds}',
    *['--quick'] * options.quick,
    *['--cpu-time'] * options.cpu_time,
  ]
  if options.cpu_time:
    harness.clock = time.process_time
  results: Dict[str, Any] = {}
  failed = []
  for name in names:
    start = time.monotonic()
    if options.here:
      rows: Any = _run_here(name, settings)
    else:
      print(f'{name} ...', end=' ', file=sys.stderr, flush=True)
      rows = _run_apart(name, arguments)
      ratios = [f'{r["ratio"]:.2f}x' for r in rows or () if r['ratio']]
      print(
        f'{time.monotonic() - start:.0f} s',
        *ratios,
        file=sys.stderr,
        flush=True,
      )
    if rows is None:
      failed.append(name)
    else:
      results[name] = {'machine': harness.machine(), 'rows': rows}
  print(harness.table(_all_rows(results)))
  if options.json:
    options.json.write_text(json.dumps(results, indent=1) + '\n')
  if options.save:
    results = {**harness.read_rows(_RESULTS), **results}
    _RESULTS.write_text(json.dumps(results, indent=1) + '\n')
    _write_readme(results)
  if failed:
    print(f'failed: {", ".join(failed)}', file=sys.stderr)
  return 1 if failed else 0


if __name__ == '__main__':
  sys.exit(main())
