"""Bounds the size of the code.

A line of code contains a token other than comments and docstrings. To add more
than a bound allows, make something else smaller, or raise the bound
deliberately.
"""

import ast
import collections
import functools
import io
import shutil
import subprocess
import tokenize

import pytest

from tests import python

AT_MOST = {
  'lines of code': 24_112,
  'lines of code in bt_acme/runtime': 4_247,
  'lines of code in experiments': 4_476,
  'lines of code in benchmarks': 2_556,
  'classes': 248,
  'public class names that several classes have': 2,
  'lines of tests': 30_242,
}

_TOPS = ('bt_acme', 'launch', 'experiments', 'benchmarks')
_HAVE_DOCSTRINGS = (ast.Module, ast.ClassDef, ast.FunctionDef)
_LAYOUT = 'COMMENT NL NEWLINE INDENT DEDENT ENDMARKER'.split()


def _sources(*tops):
  """Returns the Python files of the given directories, or of all."""
  return [
    path
    for top in tops or _TOPS
    for path in sorted((python.ROOT / top).rglob('*.py'))
  ]


def lines_of_code(source):
  lines = set()
  for token in tokenize.generate_tokens(io.StringIO(source).readline):
    if tokenize.tok_name[token.type] not in _LAYOUT:
      lines.update(range(token.start[0], token.end[0] + 1))
  for node in ast.walk(ast.parse(source)):
    if isinstance(node, _HAVE_DOCSTRINGS) and ast.get_docstring(node):
      docstring = node.body[0]
      lines -= {*range(docstring.lineno, docstring.end_lineno + 1)}
  return len(lines)


@functools.cache
def _code_of(path):
  return lines_of_code(path.read_text())


def _count(what):
  if what == 'lines of tests':
    return sum(path.read_text().count('\n') for path in _sources('tests'))
  if what.startswith('lines of code'):
    _, _, folder = what.partition(' in ')
    return sum(map(_code_of, _sources(*filter(None, [folder]))))
  counts = collections.Counter(
    node.name
    for path in _sources()
    for node in ast.walk(ast.parse(path.read_text()))
    if isinstance(node, ast.ClassDef)
  )
  if what == 'classes':
    return counts.total()
  return sum(n > 1 and not name.startswith('_') for name, n in counts.items())


@pytest.mark.parametrize('what', AT_MOST)
def test_no_more_than(what):
  assert _count(what) <= AT_MOST[what], f'{_count(what):,} {what}'


def test_every_folder_is_counted():
  for top in (*_TOPS, 'bt_acme/runtime', 'tests'):
    assert any(map(_code_of, _sources(top)))


def test_docstrings_comments_and_blank_lines_are_no_code():
  assert lines_of_code('"""A."""\n\n# B.\nx = """C\n\nD"""  # E.\n') == 3
  function = 'def f(\n  x,\n):\n  """A.\n\n  B.\n  """\n  pass\n'
  assert lines_of_code(function) == 4


def test_no_ignored_file_is_tracked():
  """A checkout would replace the ignored file or directory, such as .venv."""
  if shutil.which('git') is None:
    pytest.skip('needs Git')
  git = ['git', 'ls-files', '--cached', '--ignored', '--exclude-standard']
  listed = subprocess.run(git, cwd=python.ROOT, capture_output=True, text=True)
  assert not listed.stdout
