"""Measures which wrong tokens the tests detect, by running them on mutants.

    python -m tests.mutants --seed=0 --mutants=300

A mutant is one changed token of `bt_acme/core`, `acting`, `replay` or `runtime`
(`tests/mutation/sites.py` says which tokens). The tests that reach its line run
in a copy of the tree until one of them fails. A mutant that makes the tests far
slower counts as killed.
"""

import argparse
import collections
import contextlib
import dataclasses
import difflib
import functools
import multiprocessing
import os
import pathlib
import signal
import sys
import time
from typing import Any, Dict, Iterator, List, Mapping, Sequence

from tests.mutation import coverage_map, forks, sites

_ROOT = pathlib.Path(__file__).parents[1]
_PACKAGES = 'core,acting,replay,runtime'
# A test may take this many seconds more than three times its usual time. Code
# changed by a mutant must be compiled, while unchanged code is in a cache.
_PATIENCE = 60
_LONGEST_PROGRAM = 30  # Seconds, for a test that starts a process.
_TOO_LONG = 'a test took too long'


@dataclasses.dataclass(frozen=True)
class Outcome:
  """The outcome of running the tests on a mutant.

  Attributes:
    mutant: the mutant.
    verdict: killed, timeout, survived, or unclear if the tests also fail or
      time out without the mutant.
    reason: the failure, or the number of tests that passed.
    seconds: the duration of the tests.
  """

  mutant: sites.Mutant
  verdict: str
  reason: str
  seconds: float

  def __str__(self) -> str:
    return f'{self.mutant}  {self.verdict} {self.reason} ({self.seconds:.1f} s)'


class _Runner:
  """Runs selected tests of one file and records failures.

  A test that takes far longer than usual is interrupted and fails.

  Args:
    seconds: the usual duration of each test, if known.
  """

  def __init__(self, seconds: Mapping[str, float]):
    self.failed: List[str] = []
    self._seconds = seconds
    self._order: Dict[str, int] = {}

  def run(self, tests: Sequence[str], *options: str) -> None:
    """Runs tests in the given order."""
    self._order = {test: place for place, test in enumerate(tests)}
    file = tests[0].split('::')[0]
    coverage_map.run_pytest([file], self, *options)

  def pytest_collection_modifyitems(self, items):
    """Selects and sorts the tests; a hook that pytest calls by its name."""
    items[:] = [item for item in items if item.nodeid in self._order]
    items.sort(key=lambda item: self._order[item.nodeid])

  def pytest_collectreport(self, report):
    if report.failed:
      self.failed.append(f'import of {report.nodeid}')

  def pytest_runtest_logstart(self, nodeid, location):
    del location
    usual = self._seconds.get(nodeid, _LONGEST_PROGRAM)
    signal.signal(signal.SIGALRM, self._interrupt)
    signal.alarm(int(_PATIENCE + 3 * usual))

  def pytest_runtest_logfinish(self, nodeid, location):
    del nodeid, location
    signal.alarm(0)

  def pytest_runtest_logreport(self, report):
    if report.failed:
      self.failed.append(report.nodeid)

  def _interrupt(self, *_):
    self.failed.append(_TOO_LONG)
    raise TimeoutError('this test takes too long')


def first_failure(tests: Sequence[str], seconds: Mapping[str, float]) -> str:
  """Runs tests file by file and returns the ID of the first failure, or ''."""
  runner = _Runner(seconds)
  for batch in _batches(tests):
    runner.run(batch, '-x')
    if runner.failed:
      return runner.failed[0]
  return ''


def _failures(tests: Sequence[str]) -> List[str]:
  runner = _Runner({})
  for batch in _batches(sorted(tests)):
    runner.run(batch)
  return runner.failed


def _batches(tests: Sequence[str]) -> Iterator[List[str]]:
  """Splits tests wherever the file changes."""
  batch: List[str] = []
  for test in tests:
    if batch and batch[0].split('::')[0] != test.split('::')[0]:
      yield batch
      batch = []
    batch.append(test)
  if batch:
    yield batch


_my_copy = []  # The copy of the tree that this process mutates.


def _take_copy(copies: Any) -> None:
  """Initializes a process of the pool."""
  signal.signal(signal.SIGTERM, signal.SIG_DFL)
  _my_copy.append(copies.get())


def _judge(
  tests_of: coverage_map.CoverageMap,
  most_seconds: float,
  numbered: Any,
) -> Outcome:
  """Runs the tests of a mutant in the copy of the tree of this process."""
  number, mutant = numbered
  (copy,) = _my_copy
  tests = tests_of.select(mutant, most_seconds)
  # A limit for tests that are stuck in code that ignores signals.
  limit = 2 * _PATIENCE + sum(
    3 * tests_of.seconds.get(test, _LONGEST_PROGRAM) for test in tests
  )
  file = copy / mutant.path
  source, started = file.read_bytes(), time.monotonic()
  file.write_bytes(mutant.apply(source))
  # Python reuses bytecode if time and size of the source are unchanged.
  os.utime(file, (number + 1, number + 1))
  run = functools.partial(first_failure, tests, tests_of.seconds)
  try:
    failed = forks.call(run, copy, limit)
  finally:
    file.write_bytes(source)
  is_slow = failed in (None, _TOO_LONG)
  if is_slow and forks.call(run, copy, limit) != '':
    return Outcome(mutant, 'unclear', 'tests are slow or fail anyway', 0.0)
  seconds = time.monotonic() - started
  if is_slow:
    return Outcome(mutant, 'timeout', f'after {len(tests)} tests', seconds)
  if failed:
    reason = failed if isinstance(failed, str) else failed['crash']
    return Outcome(mutant, 'killed', reason, seconds)
  return Outcome(mutant, 'survived', f'{len(tests)} tests', seconds)


def _without_unreliable(
  outcomes: Sequence[Outcome], copy: pathlib.Path
) -> List[Outcome]:
  """Runs the tests that killed mutants again, on the original code."""
  killers = {one.reason for one in outcomes if one.verdict == 'killed'}
  tests = [killer for killer in killers if '::' in killer]
  run = functools.partial(_failures, tests)
  failed = forks.call(
    run, copy, (_PATIENCE + _LONGEST_PROGRAM) * (1 + len(tests))
  )
  if not isinstance(failed, list):
    raise RuntimeError(f'The tests do not finish without a mutant: {failed}')
  return [
    dataclasses.replace(one, verdict='unclear') if one.reason in failed else one
    for one in outcomes
  ]


def _sources(
  tree: pathlib.Path, packages: Sequence[str]
) -> Dict[str, Dict[str, bytes]]:
  return {
    package: {
      str(file.relative_to(tree)): file.read_bytes()
      for file in sorted((tree / 'bt_acme' / package).rglob('*.py'))
    }
    for package in packages
  }


def shares(outcomes: Sequence[Outcome]) -> Iterator[str]:
  """Formats how many mutants of each package were killed."""
  of_package = collections.defaultdict(list)
  clear = [one for one in outcomes if one.verdict != 'unclear']
  for outcome in clear:
    of_package[outcome.mutant.path.split('/')[1]].append(outcome)
  of_package['all'] = clear
  for package, mine in of_package.items():
    survived = sum(one.verdict == 'survived' for one in mine)
    timeouts = sum(one.verdict == 'timeout' for one in mine)
    killed = len(mine) - survived
    yield (
      f'{package}: {killed} of {len(mine)} killed '
      f'({killed / max(len(mine), 1):.1%}), of these {timeouts} by timeout'
    )


def _diff(mutant: sites.Mutant, source: bytes) -> str:
  lines = difflib.unified_diff(
    source.decode().splitlines(),
    mutant.apply(source).decode().splitlines(),
    mutant.path,
    mutant.path,
    n=2,
    lineterm='',
  )
  return '\n'.join(lines)


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
  parser = argparse.ArgumentParser(prog='python -m tests.mutants')
  parser.add_argument('--seed', type=int, default=0)
  parser.add_argument('--mutants', type=int, default=300)
  parser.add_argument('--packages', default=_PACKAGES)
  parser.add_argument(
    '--tests', default=_PACKAGES, help='directories of the tests to run'
  )
  parser.add_argument('--jobs', type=int, default=1)
  parser.add_argument(
    '--report', type=pathlib.Path, help='file for a copy of the output'
  )
  parser.add_argument('--tree', type=pathlib.Path, default=_ROOT)
  parser.add_argument('--minutes', type=float, default=float('inf'))
  parser.add_argument(
    '--test_seconds', type=float, default=40, help='seconds of tests per mutant'
  )
  return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> None:
  """Draws mutants, judges them, and prints a report."""
  options = _parse(arguments)
  signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
  tree, packages = options.tree.resolve(), options.packages.split(',')
  report = _Report(options.report)
  sources = _sources(tree, packages)
  mutants = sites.draw(sources, options.mutants, options.seed)
  forks.import_once()
  cache = _ROOT / '.pytest_cache' / 'mutants'
  tests_of = coverage_map.load(
    tree, packages, options.tests.split(','), cache, options.jobs
  )
  judge = functools.partial(_judge, tests_of, options.test_seconds)
  end = time.monotonic() + 60 * options.minutes
  outcomes = []
  with _copying_pool(tree, options.jobs) as pool:
    for outcome in pool.imap_unordered(judge, enumerate(mutants)):
      report.add(str(outcome))
      outcomes.append(outcome)
      if time.monotonic() > end:
        break
  with forks.copied_tree(tree) as copy:
    outcomes = _without_unreliable(outcomes, copy)
  report.add('')
  for outcome in outcomes:
    if outcome.verdict == 'unclear':
      report.add(str(outcome))
  for line in shares(outcomes):
    report.add(line)
  for outcome in outcomes:
    if outcome.verdict == 'survived':
      path = outcome.mutant.path
      report.add(_diff(outcome.mutant, sources[path.split('/')[1]][path]))


@contextlib.contextmanager
def _copying_pool(tree: pathlib.Path, jobs: int) -> Iterator[Any]:
  """Creates processes, each with a copy of the tree."""
  context = multiprocessing.get_context('fork')
  copies = context.SimpleQueue()
  with contextlib.ExitStack() as stack:
    for _ in range(jobs):
      copies.put(stack.enter_context(forks.copied_tree(tree)))
    yield stack.enter_context(context.Pool(jobs, _take_copy, (copies,)))


class _Report:
  """Prints lines, and also appends them to a file if given."""

  def __init__(self, path: pathlib.Path | None):
    self._path = path
    if path is not None:
      path.write_text('')

  def add(self, text: str) -> None:
    print(text, flush=True)
    if self._path is not None:
      with self._path.open('a') as file:
        file.write(f'{text}\n')


if __name__ == '__main__':
  main(sys.argv[1:])
