"""Measures which wrong tokens the tests detect, by running them on mutants.

    python -m tests.mutants --seed=0 --mutants=300

A mutant is one changed token of `bt_acme/core`, `acting`, `replay` or `runtime`
(`tests/mutated_tokens.py` says which tokens). The tests that reach its line run
in a copy of the tree until one of them fails. A mutant that makes the tests far
slower counts as killed.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import difflib
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from typing import NamedTuple

from tests import mutated_tokens, python

_PACKAGES = 'core,acting,replay,runtime'
# Whole runs, for lines that no test reaches within its own process.
_PROGRAMS = ('tests/launch/programs_test.py',)
_PROGRAM_SECONDS = 120
# The tests of a mutant may take this many seconds more than three times their
# usual time. Changed code must be compiled; unchanged code is in a cache.
_PATIENCE = 60
_LONGEST_FILE = 900  # Seconds.
_MORE = 5  # A mutant that survives meets tests of this many times the duration.
_START_SECONDS = 3  # The time that pytest and the imports take.
_MOST_MEMORY = 8 << 30  # Bytes. A mutant may request any amount.
# Records the duration of each test that passes, and the tests that reach each
# line; a plugin of pytest.
_PLUGIN = """
import collections, coverage, json, os

source = os.environ['SOURCE'].split()
measured = coverage.Coverage(data_file=None, source=source)
measured.start()
seconds, failed = collections.Counter(), set()

def pytest_runtest_logstart(nodeid):
  measured.switch_context(nodeid.partition('[')[0])

def pytest_runtest_logreport(report):
  test = report.nodeid.partition('[')[0]
  seconds[test] += report.duration
  if report.failed:
    failed.add(test)

def pytest_sessionfinish():
  measured.stop()
  data = measured.get_data()
  lines = {os.path.relpath(x): data.contexts_by_lineno(x)
           for x in data.measured_files()}
  passed = {x: seconds[x] for x in seconds if x not in failed}
  with open('observed.json', 'w') as file:
    json.dump([passed, lines], file)
"""
_THREAD = threading.local()  # `copy` is the copy of the tree that it uses.
_FAILED = re.compile(r'^(?:FAILED|ERROR) ([^\s\[]+)', re.MULTILINE)


class Outcome(NamedTuple):
  """The outcome of running the tests on a mutant.

  Attributes:
    mutant: the mutant.
    verdict: killed, timeout, survived, or unclear if the tests also fail or
      time out without the mutant.
    reason: the test that failed, or the number of tests that passed.
  """

  mutant: mutated_tokens.Mutant
  verdict: str
  reason: str

  def __str__(self):
    return f'{self.mutant}  {self.verdict} {self.reason}'


def select(seconds, reached, mutant, most_seconds):
  """Returns tests that may detect a mutant, the most promising ones first.

  The tests of the module's own test file come first, then other tests that
  reach the statement, then the other tests of these files: compiled functions
  are shared within a file, so only its first test appears to reach them, and
  other processes are not observed. A line that runs during import is reached by
  all tests that reach the file.

  Args:
    seconds: the duration of each test function that passes, by its ID.
    reached: the tests that reach a line, by file and line; '' is the import.
    mutant: the mutant.
    most_seconds: the maximum total duration of the tests, without the mutant.
  """
  lines = reached.get(mutant.path, {})
  first, last = mutant.lines
  numbers = map(str, range(first, last + 1))
  direct = set().union(*(lines.get(number, ()) for number in numbers))
  if '' in direct:
    direct.update(*lines.values())
  direct &= seconds.keys()
  own = mutant.path.replace('bt_acme/', 'tests/').replace('.py', '_test.py')
  cost = collections.Counter()
  for test in direct:
    cost[_file_of(test)] += seconds[test]
  found = [test for test in seconds if _file_of(test) in {*cost, own}]
  found.sort(
    key=lambda test: (
      test not in direct,
      _file_of(test) != own,
      cost[_file_of(test)],
      seconds[test],
    )
  )
  taken, left = [], most_seconds
  for test in found:
    if seconds[test] <= left or not taken:
      taken.append(test)
      left -= seconds[test]
  return [*taken, *(() if direct else _PROGRAMS)]


def _file_of(test):
  return test.partition('::')[0]


@contextlib.contextmanager
def _copied(tree):
  """Copies the files of a tree that Git lists; deletes the copy at the end.

  The environments are linked, because tests of Ray need theirs.
  """
  command = ['git', 'ls-files', '-z', '-co', '--exclude-standard']
  listed = subprocess.check_output(command, cwd=tree, text=True)
  with tempfile.TemporaryDirectory(prefix='mutants-') as folder:
    copy = pathlib.Path(folder, 'tree')
    for name in filter(None, listed.split('\0')):
      if (tree / name).is_file():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(tree / name, copy / name)
    for environment in tree.glob('.venv*'):
      (copy / environment.name).symlink_to(environment.resolve())
    yield copy


def _pytest(copy, seconds, *arguments, **variables):
  """Runs pytest in a copy; returns its exit code, None if slow, and output.

  Args:
    copy: the working directory.
    seconds: the time limit, after which pytest and its processes are killed.
    *arguments: the arguments of pytest.
    **variables: environment variables.
  """
  command = ['prlimit', f'--data={_MOST_MEMORY}', sys.executable, '-m']
  command += ['pytest', '-q', '-p', 'no:cacheprovider', *arguments]
  environment = {**os.environ, 'PYTHONPATH': str(copy), **variables}
  cache = python.ROOT / '.pytest_cache' / 'jax'
  environment.setdefault('JAX_COMPILATION_CACHE_DIR', str(cache))
  process = subprocess.Popen(
    command,
    cwd=copy,
    env=environment,
    stdin=subprocess.DEVNULL,
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
    errors='replace',
    start_new_session=True,
  )
  try:
    output = process.communicate(timeout=seconds)[0]
    return process.returncode, output
  except subprocess.TimeoutExpired:
    return None, 'too slow'
  finally:
    with contextlib.suppress(ProcessLookupError):
      os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _observe(packages, test_file):
  """Runs a test file; returns `seconds` and `reached` for `select`."""
  copy = _THREAD.copy
  (copy / 'observe.py').write_text(_PLUGIN)
  observed = copy / 'observed.json'
  observed.unlink(missing_ok=True)
  source = ' '.join(f'bt_acme/{package}' for package in packages)
  options = ('-m', 'not slow', '-p', 'observe', test_file)
  _, output = _pytest(copy, _LONGEST_FILE, *options, SOURCE=source)
  if not observed.exists():
    print(f'excluded: {test_file}\n{output[-2000:]}')
    return {}, {}
  seconds, reached = json.loads(observed.read_text())
  print(f'{test_file}: {sum(seconds.values()):.1f} s')
  return seconds, reached


def _observe_all(copy, packages, test_folders, pool):
  """Returns `seconds` and `reached`; results of the same code are reused."""
  digest = hashlib.sha256(' '.join(packages).encode())
  for pattern in ('bt_acme/**/*.py', 'tests/**/*.py'):
    for file in sorted(copy.glob(pattern)):
      digest.update(str(file.relative_to(copy)).encode() + file.read_bytes())
  cache = python.ROOT / '.pytest_cache' / 'mutants' / digest.hexdigest()[:16]
  cache.mkdir(parents=True, exist_ok=True)

  def observe(test_file):
    result = cache / f'{test_file.replace("/", "-")}.json'
    if not result.exists():
      found = _observe(packages, test_file)
      result.with_suffix('.partial').write_text(json.dumps(found))
      result.with_suffix('.partial').rename(result)
    return json.loads(result.read_text())

  test_files = sorted(
    str(file.relative_to(copy))
    for folder in test_folders
    for file in (copy / 'tests' / folder).rglob('*_test.py')
  )
  seconds = {}
  reached = collections.defaultdict(lambda: collections.defaultdict(list))
  for found_seconds, found_reached in pool.map(observe, test_files):
    seconds.update(found_seconds)
    for path, lines in found_reached.items():
      for line, tests in lines.items():
        reached[path][line] += tests
  return seconds, reached


def _judge(mutant, tests, usual):
  """Runs tests on a mutant in a copy of the tree."""
  copy = _THREAD.copy
  limit = _PATIENCE + _START_SECONDS + 3 * usual
  file = copy / mutant.path
  source = file.read_bytes()
  file.write_bytes(mutant.apply(source))
  # Python reuses bytecode if time and size of the source are unchanged.
  os.utime(file, (hash(mutant) % 2**31,) * 2)
  try:
    code, output = _pytest(copy, limit, '-x', *tests)
  finally:
    file.write_bytes(source)
  if code is None:
    if _pytest(copy, limit, '-x', *tests)[0] is None:
      return Outcome(mutant, 'unclear', 'tests are slow anyway')
    return Outcome(mutant, 'timeout', f'after {len(tests)} tests')
  if code == 0:
    return Outcome(mutant, 'survived', f'{len(tests)} tests')
  failed = _FAILED.search(output)
  return Outcome(mutant, 'killed', failed[1] if failed else f'status {code}')


def _without_unreliable(outcomes, copy):
  """Runs the tests that killed mutants again, on the original code."""
  tests = sorted({one.reason for one in outcomes if '::' in one.reason})
  limit = _PATIENCE + _PROGRAM_SECONDS
  failed = {test for test in tests if _pytest(copy, limit, test)[0] != 0}
  return [
    one._replace(verdict='unclear') if one.reason in failed else one
    for one in outcomes
  ]


def shares(outcomes):
  """Formats how many mutants of each package were killed."""
  of_package = collections.defaultdict(list)
  clear = [one for one in outcomes if one.verdict != 'unclear']
  for outcome in clear:
    of_package[outcome.mutant.path.split('/')[1]].append(outcome.verdict)
  of_package['all'] = [one.verdict for one in clear]
  for package, verdicts in of_package.items():
    killed = len(verdicts) - verdicts.count('survived')
    yield (
      f'{package}: {killed} of {len(verdicts)} killed '
      f'({killed / max(len(verdicts), 1):.1%}), of these '
      f'{verdicts.count("timeout")} by timeout'
    )


def main(arguments):
  """Draws mutants, judges them, and prints a report."""
  parser = argparse.ArgumentParser(prog='python -m tests.mutants')
  parser.add_argument('--seed', type=int, default=0)
  parser.add_argument('--mutants', type=int, default=300)
  parser.add_argument('--packages', default=_PACKAGES)
  parser.add_argument('--tests', default=_PACKAGES, help='directories in tests')
  parser.add_argument('--jobs', type=int, default=1)
  parser.add_argument('--tree', type=pathlib.Path, default=python.ROOT)
  parser.add_argument('--minutes', type=float, default=float('inf'))
  parser.add_argument(
    '--test_seconds', type=float, default=40, help='seconds of tests per mutant'
  )
  options = parser.parse_args(arguments)
  tree, packages = options.tree.resolve(), options.packages.split(',')
  test_folders = options.tests.split(',')
  for folder in test_folders:
    if not (tree / 'tests' / folder).is_dir():
      parser.error(f'--tests={folder} is not a directory in tests.')
  sources = {
    package: {
      str(file.relative_to(tree)): file.read_bytes()
      for file in sorted((tree / 'bt_acme' / package).rglob('*.py'))
    }
    for package in packages
  }
  end = time.monotonic() + 60 * options.minutes
  with contextlib.ExitStack() as stack:
    copies = [stack.enter_context(_copied(tree)) for _ in range(options.jobs)]
    unused = iter(copies)
    pool = concurrent.futures.ThreadPoolExecutor(
      options.jobs, initializer=lambda: setattr(_THREAD, 'copy', next(unused))
    )
    stack.enter_context(pool)
    seconds, reached = _observe_all(copies[0], packages, test_folders, pool)

    def judge(mutant):
      if time.monotonic() > end:
        return None
      # Most mutants are killed early. Only the others need many tests.
      for limit in (options.test_seconds, _MORE * options.test_seconds):
        tests = select(seconds, reached, mutant, limit)
        usual = sum(seconds.get(t, _PROGRAM_SECONDS) for t in tests)
        outcome = _judge(mutant, tests, usual)
        if outcome.verdict != 'survived':
          break
      print(outcome, flush=True)
      return outcome

    drawn = mutated_tokens.draw(sources, options.mutants, options.seed)
    outcomes = [one for one in pool.map(judge, drawn) if one is not None]
    outcomes = _without_unreliable(outcomes, copies[0])
  print()
  for outcome in outcomes:
    if outcome.verdict == 'unclear':
      print(outcome)
  print('\n'.join(shares(outcomes)))
  for outcome in outcomes:
    if outcome.verdict == 'survived':
      path = outcome.mutant.path
      source = (tree / path).read_bytes()
      texts = source, outcome.mutant.apply(source)
      lines = (text.decode().splitlines() for text in texts)
      diff = difflib.unified_diff(*lines, path, path, n=2, lineterm='')
      print('\n'.join(diff))


if __name__ == '__main__':
  main(sys.argv[1:])
