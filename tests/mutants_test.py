"""Tests mutants: single tokens of code change, and nothing else."""

import ast
import json
import pathlib
import subprocess
import sys
import tokenize

import pytest

from tests import mutants
from tests.mutation import coverage_map, sites

_ROOT = pathlib.Path(__file__).parents[1]
_LEFT_OUT = '''
"""A docstring with 1 < 2 and not True."""
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
  SIZE = 1
__all__ = ['name' + 'other', 1]


@dataclass(frozen=True)
class Some:
  """min(1, 2)."""

  row: Array[1, -2 | None]

  def call(self, row: Literal[3] = None) -> Literal[True]:
    # not 1
    logging.info('%d', row + 1)
    print(f'{row + 1}')
    sleep(2)
    wait(timeout=1)
    assert row, str(row + 1)
    if row:
      raise ValueError(f'{row}' + str(row - 1))
'''


def _found(source):
  """Returns all replacements, as pairs of old and new tokens."""
  return {
    (mutant.before, mutant.after)
    for place in sites.find('some.py', source.encode())
    for mutant in place
  }


@pytest.mark.parametrize(
  'source, expected',
  [
    ('a < b <= c', {('<', '<='), ('<', '>='), ('<=', '<'), ('<=', '>')}),
    ('a is not None', {('is not', 'is')}),
    ('a not  in b', {('not  in', 'in')}),
    ('(a) + (\n  b\n)', {('+', '-')}),
    ('a += b', {('+=', '-=')}),
    ("'a' + b", set()),
    ("'a' % b", set()),
    ('a and b or c', {('and', 'or'), ('or', 'and')}),
    ('not a', {('not', '')}),
    ('-a', {('-', '+')}),
    ('f(0, 1, True)', {('0', '1'), ('1', '0'), ('1', '2'), ('True', 'False')}),
    ('7', {('7', '8'), ('7', '6')}),
    ('0.5', {('0.5', '1.5'), ('0.5', '-0.5')}),
    ('a[b:]', {('b', 'b + 1'), ('b', 'b - 1')}),
    ('range(len(a))', {('len(a)', 'len(a) + 1'), ('len(a)', 'len(a) - 1')}),
    ('jnp.minimum(a, max(b))', {('minimum', 'maximum'), ('max', 'min')}),
    ('"ä" == a', {('==', '!=')}),
    (_LEFT_OUT, set()),
  ],
)
def test_mutated_tokens(source, expected):
  assert _found(source) == expected


def _tokens(source):
  lines = iter(source.splitlines(keepends=True))
  return [token.string for token in tokenize.tokenize(lambda: next(lines, b''))]


def test_a_mutant_changes_one_token():
  path = 'bt_acme/core/targets.py'
  source = (_ROOT / path).read_bytes()
  places = sites.find(path, source)
  assert len(places) > 20
  for mutant in (mutant for place in places for mutant in place):
    mutated = mutant.apply(source)
    ast.parse(mutated)
    assert mutated != source
    first, last = mutant.lines
    assert first <= mutant.line <= last
    assert mutant.before in source.splitlines()[mutant.line - 1].decode()
    before, after = _tokens(source), _tokens(mutated)
    start = next(
      place
      for place, (one, other) in enumerate(zip(before, after, strict=False))
      if one != other
    )
    # `a` and `a + 1` differ by two tokens, `-1` and `1` by one.
    rest = min(len(before), len(after)) - start - 2
    assert before[-rest:] == after[-rest:]


def test_draws_follow_the_seed_and_the_sizes_of_packages():
  small, large = b'a < 1\n', b'a < 1\nb > 2\nc = 3\n' * 20
  packages = {'small': {'s.py': small * 20}, 'large': {'l.py': large}}
  drawn = sites.draw(packages, 40, seed=3)
  assert drawn == sites.draw(packages, 40, seed=3)
  assert drawn != sites.draw(packages, 40, seed=4)
  assert len({(mutant.path, mutant.start) for mutant in drawn}) == 40
  assert [mutant.path for mutant in drawn].count('s.py') == 10


def _map():
  return coverage_map.CoverageMap(
    seconds={
      'tests/core/one_test.py::slow': 5.0,
      'tests/core/one_test.py::quick': 0.1,
      'tests/core/one_test.py::unrelated': 0.0,
      'tests/acting/other_test.py::first': 0.2,
    },
    programs=['tests/core/one_test.py::starts', 'tests/core/two_test.py::also'],
    reached={
      'bt_acme/core/one.py': {
        '1': [''],
        '2': [
          'tests/core/one_test.py::slow',
          'tests/core/one_test.py::quick',
          'tests/acting/other_test.py::first',
        ],
        '4': ['tests/core/two_test.py::also'],
      },
    },
  )


def _mutant(line, path='bt_acme/core/one.py'):
  return sites.Mutant(path, (line, line), line, 0, 1, '<', '<=')


def test_the_quickest_tests_of_a_line_come_first():
  reaching = [
    'tests/core/one_test.py::quick',
    'tests/core/one_test.py::slow',
    'tests/acting/other_test.py::first',
  ]
  everything = [*reaching, 'tests/core/one_test.py::unrelated']
  assert _map().select(_mutant(2), 100) == everything
  # A line that runs at import affects all tests that use the file.
  assert _map().select(_mutant(1), 100) == everything
  assert _map().select(_mutant(2), 2) == [
    *(reaching[0], reaching[2], everything[-1])
  ]
  # Programs are started only for lines that no other test reaches.
  programs = _map().programs
  assert _map().select(_mutant(3), 100) == programs
  assert _map().select(_mutant(4), 100) == programs[::-1]
  whole = _map().select(_mutant(3, 'bt_acme/core/new.py'), 100)
  for test in whole:
    file, function = test.split('::')
    assert f'def {function}(' in (_ROOT / file).read_text()
  assert whole


_RUN = """
import json, pathlib, sys
from tests import mutants
from tests.mutation import forks
def run(seconds, usual, *names):
  tests = [f'tests/some_test.py::test_{name}' for name in names]
  copy = pathlib.Path(sys.argv[1])
  known = dict.fromkeys(tests, usual)
  run_them = lambda: mutants.first_failure(tests, known)
  return forks.call(run_them, copy, seconds)
print(json.dumps([
  run(60, 0, 'good'),
  run(60, 0, 'good', 'bad', 'endless'),
  run(60, -19, 'endless'),  # The time limit is three seconds.
  run(3, 0, 'endless'),
]))
"""
_SOME_TEST = """
import time
def test_good(): pass
def test_bad(): assert False
def test_endless(): time.sleep(1000)
"""


def test_a_child_runs_the_tests_of_a_tree(tmp_path):
  (tmp_path / 'tree' / 'tests').mkdir(parents=True)
  (tmp_path / 'tree' / 'pyproject.toml').write_text('[tool.pytest.ini_options]')
  (tmp_path / 'tree' / 'tests' / 'some_test.py').write_text(_SOME_TEST)
  # A new process, because threads of this one would not survive a fork.
  printed = subprocess.check_output(
    [sys.executable, '-c', _RUN, tmp_path / 'tree'], cwd=_ROOT, text=True
  )
  bad, endless = 'tests/some_test.py::test_bad', 'a test took too long'
  assert json.loads(printed) == ['', bad, endless, None]


def test_shares_count_timeouts_as_killed():
  verdicts = ('killed', 'survived', 'timeout', 'killed', 'unclear')
  outcomes = [
    mutants.Outcome(_mutant(line), verdict, '', 1.0)
    for line, verdict in enumerate(verdicts)
  ]
  share = '3 of 4 killed (75.0%), of these 1 by timeout'
  assert list(mutants.shares(outcomes)) == [f'core: {share}', f'all: {share}']
