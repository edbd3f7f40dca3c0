"""Tests mutants: single tokens of code change, and nothing else."""

import ast
import subprocess

import pytest

from tests import mutants, mutated_tokens, python

_LEFT_OUT = '''
"""A docstring with 1 < 2 and not True."""
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
  SIZE = 1
__all__ = ['name' + 'other', 1]
_POLL_SECONDS = 0.5


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
    zip(rows, strict=True)
    assert row, str(row + 1)
    if row:
      raise ValueError(f'{row}' + str(row - 1))
'''


@pytest.mark.parametrize(
  'source, expected',
  [
    ('a < b <= c', {('<', '<='), ('<', '>='), ('<=', '<'), ('<=', '>')}),
    ('a is not None', {('is not', 'is')}),
    ('a not  in b', {('not  in', 'in')}),
    ('(a) + (  # -\n  b\n)', {('+', '-')}),
    ('a += b', {('+', '-')}),
    ("'a' + b", set()),
    ("'a' % b", set()),
    ('a @ b', set()),
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
  places = mutated_tokens.find('some.py', source.encode())
  found = {(mutant.before, mutant.after) for x in places for mutant in x}
  assert found == expected


def test_a_mutant_is_valid_and_changes_its_line():
  path = 'bt_acme/core/targets.py'
  source = (python.ROOT / path).read_bytes()
  places = mutated_tokens.find(path, source)
  assert len(places) > 20
  for mutant in (mutant for place in places for mutant in place):
    mutated = mutant.apply(source)
    ast.parse(mutated)
    first, last = mutant.lines
    assert first <= mutant.line <= last
    lines = zip(source.splitlines(), mutated.splitlines(), strict=True)
    changed = [i for i, (x, y) in enumerate(lines, 1) if x != y]
    assert changed == [mutant.line]


def test_the_quickest_tests_of_a_line_come_first():
  slow, quick, unrelated = (
    f'tests/core/one_test.py::{name}' for name in ('slow', 'quick', 'unrelated')
  )
  other = 'tests/acting/other_test.py::first'
  seconds = {slow: 5.0, quick: 0.1, unrelated: 0.0, other: 0.2}
  path = 'bt_acme/core/one.py'
  reached = {path: {'1': ['', other], '2': [slow, quick, other]}}

  def select(line, most_seconds=100):
    mutant = mutated_tokens.Mutant(path, (line, line), line, 0, '<', '<=')
    return mutants.select(seconds, reached, mutant, most_seconds)

  everything = [quick, slow, other, unrelated]
  assert select(2) == everything
  # A line that runs at import affects all tests that use the file.
  assert select(1) == everything
  assert select(2, most_seconds=2) == [quick, other, unrelated]
  # Whole programs are started for lines that no other test reaches.
  *own, whole = select(3)
  assert own == [unrelated, quick, slow] and (python.ROOT / whole).exists()


_FILES = {
  'pyproject.toml': '[tool.pytest.ini_options]\nmarkers = ["slow"]',
  'bt_acme/__init__.py': '',
  'bt_acme/core/__init__.py': '',
  'bt_acme/core/one.py': 'def is_large(x):\n  return x > 5\n',
  'tests/core/one_test.py': (
    'from bt_acme.core import one\n'
    'def test_large():\n  assert one.is_large(7)\n'
    'def test_bad():\n  assert not one.is_large(7)\n'
  ),
}


def test_judges_the_mutants_of_a_tree(tmp_path, monkeypatch, capsys):
  for name, text in _FILES.items():
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(text)
  subprocess.run(['git', 'init', '-q'], cwd=tmp_path, check=True)
  monkeypatch.setattr(python, 'ROOT', tmp_path)
  options = ['--packages=core', '--tests=core', '--mutants=2']
  mutants.main([*options, f'--tree={tmp_path}'])
  printed = capsys.readouterr().out
  # The test that also fails without a mutant is not used.
  where, test = 'bt_acme/core/one.py:2', 'tests/core/one_test.py::test_large'
  assert f'{where} `>` -> `<=`  killed {test}\n' in printed
  assert f'{where} `5` -> `6`  survived 1 tests\n' in printed
  assert 'core: 1 of 2 killed (50.0%), of these 0 by timeout\n' in printed
  assert '-  return x > 5\n+  return x > 6\n' in printed
  source = _FILES['bt_acme/core/one.py']
  assert (tmp_path / 'bt_acme/core/one.py').read_text() == source
  with pytest.raises(SystemExit):
    mutants.main(['--tests=tests/core', f'--tree={tmp_path}'])
