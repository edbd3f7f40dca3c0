"""Bounds the size of the code.

A line of code contains a token other than comments and docstrings. To add more
than a bound allows, make something else smaller, or raise the bound
deliberately.
"""

import ast
import collections
import functools
import io
import pathlib
import shutil
import subprocess
import tokenize

import pytest

AT_MOST = {
  'lines of code': 24_218,
  'lines of code in bt_acme/runtime': 4_271,
  'lines of code in experiments': 4_490,
  'lines of code in benchmarks': 2_605,
  'classes': 246,
  'public class names that several classes have': 2,
  'lines of tests': 30_820,
}

_ROOT = pathlib.Path(__file__).parents[1]
_TOPS = ('bt_acme', 'launch', 'experiments', 'benchmarks')
_HAVE_DOCSTRINGS = (ast.Module, ast.ClassDef, ast.FunctionDef)
_LAYOUT = 'COMMENT NL NEWLINE INDENT DEDENT ENDMARKER'.split()


def _sources(*tops):
  """Returns the Python files of the given directories, or of all."""
  return [
    path
    for top in tops or _TOPS
    for path in sorted((_ROOT / top).rglob('*.py'))
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


def _code_in(*tops):
  return sum(map(_code_of, _sources(*tops)))


def _class_names():
  return [
    node.name
    for path in _sources()
    for node in ast.walk(ast.parse(path.read_text()))
    if isinstance(node, ast.ClassDef)
  ]


def _shared_names():
  """Public names of several classes."""
  counts = collections.Counter(_class_names())
  return [n for n, c in counts.items() if c > 1 and not n.startswith('_')]


_COUNTS = {
  'lines of code': _code_in,
  'lines of code in bt_acme/runtime': lambda: _code_in('bt_acme/runtime'),
  'lines of code in experiments': lambda: _code_in('experiments'),
  'lines of code in benchmarks': lambda: _code_in('benchmarks'),
  'classes': lambda: len(_class_names()),
  'public class names that several classes have': lambda: len(_shared_names()),
  'lines of tests': lambda: sum(
    path.read_text().count('\n') for path in _sources('tests')
  ),
}


@pytest.mark.parametrize('what', AT_MOST)
def test_no_more_than(what):
  count = _COUNTS[what]()
  assert count <= AT_MOST[what], f'{count:,} {what}'


def test_every_folder_is_counted():
  for top in (*_TOPS, 'bt_acme/runtime', 'tests'):
    assert any(map(_code_of, _sources(top)))


def test_docstrings_comments_and_blank_lines_are_no_code():
  assert lines_of_code('"""A."""\n\n# B.\nx = """C\n\nD"""  # E.\n') == 3


def test_each_line_of_a_statement_is_code():
  assert (
    lines_of_code('def f(\n  x,\n):\n  """A.\n\n  B.\n  """\n  pass\n') == 4
  )


def test_no_ignored_file_is_tracked():
  """A checkout would replace the ignored file or directory, such as .venv."""
  if shutil.which('git') is None:
    pytest.skip('needs Git')
  git = ['git', 'ls-files', '--cached', '--ignored', '--exclude-standard']
  listed = subprocess.run(git, cwd=_ROOT, capture_output=True, text=True)
  assert not listed.stdout
