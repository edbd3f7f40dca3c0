"""Single-token mutants of Python code.

Mutated tokens are comparisons, arithmetic, `and`, `or`, `not`, numbers, `True`
and `False`, the ends of slices and ranges, `min` and `max`.

Tokens without effect on behavior are not mutated: docstrings, annotations,
f-strings, `raise` statements, messages of `assert`, calls that log, print or
warn, `__all__`, blocks for type checkers, the decorators `dataclass` and
`lru_cache`, durations of sleeping or waiting (`sleep`, `timeout=`, names that
end in `_SECONDS`), and arguments without effect in a correct program that ends
by itself (`strict=`, `daemon=`).
"""

import ast
import itertools
import random
import re
from typing import NamedTuple

from tests import sizes_test

# Tokens that replace each other.
_PAIRS = {
  **{'==': '!=', 'is': 'is not', 'in': 'not in', 'and': 'or'},
  **{'+': '-', '*': '/', '&': '|', '<<': '>>'},
  **{'min': 'max', 'minimum': 'maximum', 'argmin': 'argmax'},
}
# The replacements of each token.
_REPLACEMENTS = {
  **{token: [other] for token, other in _PAIRS.items()},
  **{other: [token] for token, other in _PAIRS.items()},
  **{'<': ['<=', '>='], '<=': ['<', '>'], '>': ['>=', '<='], '>=': ['>', '<']},
  **{'//': ['*'], '%': ['//'], '**': ['*'], '^': ['&'], 'not': ['']},
}
# An operator between its operands, possibly after a comment.
_OPERATOR = rb'#.*|(is\s+not\b|not\s+in\b|[^\s()\\]+)'
_LEFT_OUT_CALLS = ('print', 'warn', 'sleep', 'dataclass', 'lru_cache')
_LEFT_OUT_OWNERS = ('logging', 'logger', '_logger')
_LEFT_OUT_KEYWORDS = ('timeout', 'strict', 'daemon')
_LEFT_OUT_FIELDS = ('annotation', 'returns', 'msg')
# `+ 1` or `- 1` can be appended to these without parentheses.
_SIMPLE = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.UnaryOp)
_SUMS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv)


class Mutant(NamedTuple):
  """A single change of a file.

  Attributes:
    path: the file, relative to the tree.
    lines: the first and last line of the statement, or of a block's header.
    start: the offset of the first replaced byte in the file.
    before: the replaced text.
    after: the new text.
  """

  path: str
  lines: tuple
  line: int
  start: int
  before: str
  after: str

  def apply(self, source):
    """Returns the changed file, as bytes."""
    end = self.start + len(self.before.encode())
    return source[: self.start] + self.after.encode() + source[end:]

  def __str__(self):
    return f'{self.path}:{self.line} `{self.before}` -> `{self.after}`'


def find(path, source):
  """Returns the mutants of a file, grouped by the token that they replace."""
  sizes = map(len, source.splitlines(keepends=True))
  line_starts = [0, *itertools.accumulate(sizes)]
  places = {}

  def offset(line, column):
    return line_starts[line - 1] + column

  def visit(node, lines):
    if _is_left_out(node):
      return
    lines = _lines_of(node) if isinstance(node, ast.stmt) else lines
    for first, last, pattern, others in _changes(node):
      start, end = offset(*first), offset(*last)
      for match in re.finditer(pattern, source[start:end]):
        before = (match[1] or b'').decode()
        others = others or _REPLACEMENTS.get(' '.join(before.split()), [])
        if others:
          start += match.start(1)
          line = source.count(b'\n', 0, start) + 1
          places[start, start + len(match[1])] = [
            Mutant(path, lines, line, start, before, other.format(before))
            for other in others
          ]
          break
    for name, value in ast.iter_fields(node):
      if name not in _LEFT_OUT_FIELDS:
        for child in value if isinstance(value, list) else [value]:
          if isinstance(child, ast.AST):
            visit(child, lines)

  visit(ast.parse(source), (1, 1))
  return list(places.values())


def _changes(node):
  """Yields changes: where to search, the pattern of the token, the new texts.

  `{}` in a new text is the old text. Without new texts, they are those of
  `_REPLACEMENTS`.
  """
  match node:
    case ast.Compare():
      for sides in itertools.pairwise([node.left, *node.comparators]):
        yield *_between(*sides), _OPERATOR, []
    case ast.BoolOp():
      for sides in itertools.pairwise(node.values):
        yield *_between(*sides), _OPERATOR, []
    case ast.BinOp() if not (_is_text(node.left) or _is_text(node.right)):
      yield *_between(node.left, node.right), _OPERATOR, []
    case ast.AugAssign() if not _is_text(node.value):
      yield *_between(node.target, node.value), rb'([^\s()\\]+)=', []
    case ast.UnaryOp(op=ast.Not() | ast.USub()):
      yield *_ends(node), b'(not|-)', []
    case ast.Constant(value=bool(value)):
      yield _whole(node, [repr(not value)])
    case ast.Constant(value=int(value) | float(value)):
      others = {0: [1], 1: [0, 2]}.get(value, [value + 1, value - 1])
      yield _whole(node, [repr(type(value)(x)) for x in others if x != value])
    case ast.Slice():
      yield from _shifted(node.lower, node.upper)
    case ast.Call(func=function):
      if isinstance(function, ast.Name) and function.id == 'range':
        yield from _shifted(*node.args)
      yield *_ends(function), rb'\b(\w+)$', []


def _ends(node):
  return (
    (node.lineno, node.col_offset),
    (node.end_lineno, node.end_col_offset),
  )


def _between(left, right):
  return _ends(left)[1], _ends(right)[0]


def _whole(node, others):
  return *_ends(node), b'(?s)(.+)', others


def _shifted(*nodes):
  """Yields changes of the ends of a slice or range by one."""
  for node in nodes:
    is_sum = isinstance(node, ast.BinOp) and isinstance(node.op, _SUMS)
    if isinstance(node, _SIMPLE) or is_sum:
      yield _whole(node, ['{} + 1', '{} - 1'])


def draw(packages, number, seed):
  """Draws mutants of several packages, in proportion to their lines of code.

  Args:
    packages: the contents of each file of each package.
    number: the number of mutants. Fewer are drawn from a package with too few
      tokens.
    seed: random seed of the selection and its order.

  Returns:
    The mutants in random order, so that any prefix is a random sample too.
  """
  rng = random.Random(seed)
  sizes = {
    package: sum(sizes_test.lines_of_code(x.decode()) for x in files.values())
    for package, files in packages.items()
  }
  drawn = []
  for package, files in packages.items():
    places = [
      place for path in sorted(files) for place in find(path, files[path])
    ]
    share = round(number * sizes[package] / sum(sizes.values()))
    for place in rng.sample(places, min(share, len(places))):
      drawn.append(rng.choice(place))
  rng.shuffle(drawn)
  return drawn


def _is_left_out(node):
  if isinstance(node, ast.Call):
    owner = getattr(node.func, 'value', None)
    return (
      _name_of(node.func) in _LEFT_OUT_CALLS
      or _name_of(owner) in _LEFT_OUT_OWNERS
    )
  if isinstance(node, ast.Assign):
    name = _name_of(node.targets[0])
    return name == '__all__' or name.endswith('_SECONDS')
  if isinstance(node, ast.If):
    return _name_of(node.test) == 'TYPE_CHECKING'
  if isinstance(node, ast.keyword):
    return node.arg in _LEFT_OUT_KEYWORDS
  return isinstance(node, (ast.JoinedStr, ast.Raise))


def _lines_of(node):
  """Returns the lines of a statement, or of the header of a block."""
  body = getattr(node, 'body', None)
  last = node.end_lineno
  if body:
    last = max(node.lineno, body[0].lineno - 1)
  return node.lineno, last


def _name_of(node):
  """Returns the last part of a dotted name, or '' for other nodes."""
  return getattr(node, 'id', None) or getattr(node, 'attr', None) or ''


def _is_text(node):
  is_constant = isinstance(node, ast.Constant) and isinstance(node.value, str)
  return is_constant or isinstance(node, ast.JoinedStr)
