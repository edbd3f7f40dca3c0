"""Records which tests reach which line, and how long they take.

Each test file runs in its own process, because functions that JAX has compiled
for another file would not run again. The following tests are excluded:

- tests outside the requested directories, and tests marked as slow;
- tests that take more than a minute, and tests that fail;
- tests that start a Python process. They are stopped at that point and used
  only for lines that no other test reaches.
"""

import collections
import dataclasses
import functools
import hashlib
import json
import multiprocessing
import os
import pathlib
import signal
import sys
from typing import Any, Dict, List, Mapping, Sequence, Set

from tests.mutation import forks, sites

_MOST_PROGRAMS = 4  # Maximum number of tests that start a process, per mutant.
# Tests of whole runs, for lines that no test reaches within its own process.
WHOLE_PROGRAM = (
  'tests/launch/programs_test.py::test_logs_of_a_run',
  'tests/launch/programs_test.py::test_resumed_run_restores_its_replay',
  'tests/launch/programs_test.py::test_a_run_prints_no_noise',
)
_LONGEST_TEST = 60  # Seconds.
_LONGEST_FILE = 900
_IMPORTS_OF_A_FILE = (
  0.5  # Seconds that a test file takes before its first test.
)


@dataclasses.dataclass(frozen=True)
class CoverageMap:
  """The lines that each test reaches.

  Attributes:
    seconds: the duration of each test, by its ID.
    programs: tests that start a Python process.
    reached: the tests that reach a line, by file and line. Lines that run
      during import are reached by '' alone.
  """

  seconds: Dict[str, float]
  programs: List[str]
  reached: Dict[str, Dict[str, List[str]]]

  def add(self, found: Mapping[str, Any]) -> None:
    """Adds the results of a test file."""
    self.seconds.update(found['seconds'])
    self.programs.extend(found['programs'])
    for path, lines in found['reached'].items():
      mine = self.reached.setdefault(path, {})
      for line, tests in lines.items():
        mine[line] = sorted({*mine.get(line, ()), *tests})

  def select(self, mutant: sites.Mutant, most_seconds: float) -> List[str]:
    """Returns tests that may detect a mutant, the most promising ones first.

    The tests of the module's own test file come first, then other tests that
    reach the statement, then the other tests of these files: compiled functions
    are shared within a file, so only its first test appears to reach them. A
    line that runs during import is reached by all tests that reach the file.

    Args:
      mutant: the mutant.
      most_seconds: the maximum total duration of the tests, without the mutant.
    """
    direct = self._reaching(mutant) & set(self.seconds)
    if not direct:
      return self._programs_for(mutant)
    own = _own_test_file(mutant.path)
    by_file: Dict[str, List[str]] = collections.defaultdict(list)
    for test in sorted(direct, key=self.seconds.__getitem__):
      by_file[_file_of(test)].append(test)
    files = sorted(by_file, key=lambda file: self._cost(by_file[file]))
    files.sort(key=lambda file: file != own)
    indirect = [
      test
      for file in files
      for test in sorted(self.seconds, key=self.seconds.__getitem__)
      if _file_of(test) == file and test not in direct
    ]
    ordered = [test for file in files for test in by_file[file]] + indirect
    return self._cut(ordered, most_seconds)

  def _reaching(self, mutant: sites.Mutant) -> Set[str]:
    """Returns the tests that reach a statement."""
    lines = self.reached.get(mutant.path, {})
    first, last = mutant.lines
    reaching = {
      test
      for line in range(first, last + 1)
      for test in lines.get(str(line), ())
    }
    return self._reaching_file(mutant.path) if reaching == {''} else reaching

  def _reaching_file(self, path: str) -> Set[str]:
    lines = self.reached.get(path, {})
    return {test for tests in lines.values() for test in tests}

  def _programs_for(self, mutant: sites.Mutant) -> List[str]:
    """Returns tests that start a process, the most promising ones first."""
    own, near = _own_test_file(mutant.path), self._reaching_file(mutant.path)
    reaching = self._reaching(mutant)
    found = [
      test for test in self.programs if test in near or _file_of(test) == own
    ]
    found.sort(key=lambda test: (test not in reaching, _file_of(test) != own))
    return found[:_MOST_PROGRAMS] or list(WHOLE_PROGRAM)

  def _cost(self, tests: Sequence[str]) -> float:
    return _IMPORTS_OF_A_FILE + sum(self.seconds[test] for test in tests)

  def _cut(self, tests: Sequence[str], most_seconds: float) -> List[str]:
    """Drops tests that would take too long, but keeps at least one."""
    taken, left = [], most_seconds
    files: Set[str] = set()
    for test in tests:
      file = _file_of(test)
      cost = self.seconds[test] + _IMPORTS_OF_A_FILE * (file not in files)
      if cost <= left or not taken:
        taken.append(test)
        files.add(file)
        left -= cost
    return taken


def load(
  tree: pathlib.Path,
  packages: Sequence[str],
  test_folders: Sequence[str],
  cache: pathlib.Path,
  jobs: int,
) -> CoverageMap:
  """Returns the map of a tree; cached results are reused.

  Args:
    tree: a checkout.
    packages: the packages of bt_acme whose lines are mapped.
    test_folders: directories of tests, relative to `tests`.
    cache: a directory for results, with one subdirectory per state of the code.
    jobs: the number of test files that run in parallel.
  """
  with forks.copied_tree(tree) as copy:
    folder = cache / _digest(copy, packages)
    test_files = _test_files(copy, test_folders)
  folder.mkdir(parents=True, exist_ok=True)
  observe = functools.partial(_observe_once, tree, packages, folder)
  made = CoverageMap({}, [], {})
  with multiprocessing.get_context('fork').Pool(jobs) as pool:
    for found in pool.imap_unordered(observe, test_files):
      made.add(found)
  return made


def _digest(copy: pathlib.Path, packages: Sequence[str]) -> str:
  """Returns a name for the state of the code and its tests."""
  digest = hashlib.sha256(' '.join(packages).encode())
  for folder in ('bt_acme', 'tests'):
    for file in sorted((copy / folder).rglob('*.py')):
      digest.update(str(file.relative_to(copy)).encode() + file.read_bytes())
  return digest.hexdigest()[:16]


def _test_files(copy: pathlib.Path, folders: Sequence[str]) -> List[str]:
  found = [
    str(file.relative_to(copy))
    for folder in folders
    for file in (copy / 'tests' / folder).rglob('*_test.py')
  ]
  return sorted(found)


def _observe_once(
  tree: pathlib.Path,
  packages: Sequence[str],
  folder: pathlib.Path,
  test_file: str,
) -> Dict[str, Any]:
  """Observes a test file unless its result is stored in the directory."""
  result = folder / f'{test_file.replace("/", "-")}.json'
  if not result.exists():
    found = _observe_in_copy(tree, packages, test_file)
    partial = result.with_suffix('.partial')
    partial.write_text(json.dumps(found))
    partial.rename(result)
  return json.loads(result.read_text())


def _observe_in_copy(
  tree: pathlib.Path, packages: Sequence[str], test_file: str
) -> Dict[str, Any]:
  with forks.copied_tree(tree) as copy:
    function = functools.partial(_observe, copy, packages, test_file)
    found = forks.call(function, copy, _LONGEST_FILE)
    output = (copy.parent / 'output.txt').read_text(errors='replace')
  if found is None or 'crash' in found:
    print(f'excluded: {test_file} ({found or "too slow"})\n{output[-2000:]}')
    return {'seconds': {}, 'programs': [], 'reached': {}}
  print(
    f'{test_file}: {len(found["seconds"])} tests, '
    f'{sum(found["seconds"].values()):.1f} s, '
    f'{len(found["programs"])} start programs, failed: {found["failed"]}',
    flush=True,
  )
  return found


def _observe(
  copy: pathlib.Path, packages: Sequence[str], test_file: str
) -> Dict[str, Any]:
  """Runs a test file and returns the lines that each of its tests reaches."""
  import coverage

  folders = [str(copy / 'bt_acme' / package) for package in packages]
  measured = coverage.Coverage(
    data_file=None, config_file=False, source=folders
  )
  observer = _Observer(measured)
  sys.addaudithook(observer.stop_programs)
  measured.start()
  run_pytest([test_file], observer, '-m', 'not slow')
  measured.stop()
  data = measured.get_data()
  reached = {
    os.path.relpath(file, copy): data.contexts_by_lineno(file)
    for file in data.measured_files()
  }
  return {**observer.result(), 'reached': reached}


class _Observer:
  """Records the outcome of each test, and stops slow tests and programs."""

  def __init__(self, measured: Any):
    self._measured = measured
    self._test = ''
    self._seconds: Dict[str, float] = collections.defaultdict(float)
    self._failed: Set[str] = set()
    self._programs: Set[str] = set()

  def pytest_runtest_logstart(self, nodeid, location):
    del location
    self._test = nodeid
    self._measured.switch_context(nodeid)
    signal.signal(signal.SIGALRM, self._stop_slow_test)
    signal.alarm(_LONGEST_TEST)

  def pytest_runtest_logreport(self, report):
    self._seconds[report.nodeid] += report.duration
    if not report.passed:
      self._failed.add(report.nodeid)

  def pytest_runtest_logfinish(self, nodeid, location):
    del nodeid, location
    signal.alarm(0)

  def stop_programs(self, event: str, arguments) -> None:
    """Prevents tests from starting a Python process; an audit hook."""
    if event == 'subprocess.Popen' and self._test:
      words = [str(arguments[0]), *map(os.fsdecode, _words(arguments[1]))]
      if any('python' in os.path.basename(word) for word in words[:3]):
        self._programs.add(self._test)
        raise PermissionError('This test starts a process.')

  def result(self) -> Mapping[str, Any]:
    """Returns the tests by their outcome."""
    left_out = self._failed | self._programs
    # Tests that fail together with a stopped test share a fixture with it.
    programs = left_out if self._programs else set()
    return {
      'seconds': {
        test: round(seconds, 3)
        for test, seconds in self._seconds.items()
        if test not in left_out
      },
      'programs': sorted(programs),
      'failed': sorted(self._failed - programs),
    }

  def _stop_slow_test(self, *_):
    raise TimeoutError('This test is too slow for mutants.')


def run_pytest(test_files: Sequence[str], plugin: Any, *options: str) -> None:
  """Runs test files of the working directory in this process."""
  import pytest

  pytest.main(
    ['-q', '-p', 'no:cacheprovider', '-p', 'no:xdist']
    + ['-ofaulthandler_timeout=0']  # Tests have other limits here.
    + ['--rootdir=.', '--basetemp=../temporary', *options, *test_files],
    plugins=[plugin],
  )


def _words(arguments) -> Sequence[Any]:
  return [arguments] if isinstance(arguments, (str, bytes)) else arguments


def _own_test_file(path: str) -> str:
  """Returns the test file of a module: `tests` mirrors `bt_acme`."""
  return path.replace('bt_acme/', 'tests/', 1).replace('.py', '_test.py')


def _file_of(test: str) -> str:
  return test.split('::')[0]
