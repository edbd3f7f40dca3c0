"""Single-token mutants of Python code.

Mutated tokens are comparisons, arithmetic, `and`, `or`, `not`, numbers, `True`
and `False`, the ends of slices and ranges, `min` and `max`.

Tokens without effect on behavior are not mutated: docstrings, annotations,
f-strings, `raise` statements, messages of `assert`, calls that log, print or
warn, `__all__`, blocks for type checkers, the decorators `dataclass` and
`lru_cache`, and durations of sleeping or waiting (`sleep`, `timeout=`).
"""

import ast
import bisect
import dataclasses
import io
import random
import tokenize
from typing import Dict, Iterator, List, Mapping, Sequence, Tuple

_COMPARISONS = {
  '<': ('<=', '>='),
  '<=': ('<', '>'),
  '>': ('>=', '<='),
  '>=': ('>', '<'),
  '==': ('!=',),
  '!=': ('==',),
  'is': ('is not',),
  'is not': ('is',),
  'in': ('not in',),
  'not in': ('in',),
}
_ARITHMETIC = {
  '+': ('-',),
  '-': ('+',),
  '*': ('/',),
  '/': ('*',),
  '//': ('*',),
  '%': ('//',),
  '**': ('*',),
  '&': ('|',),
  '|': ('&',),
  '^': ('&',),
  '<<': ('>>',),
  '>>': ('<<',),
}
_EXTREMES = {
  'min': 'max',
  'max': 'min',
  'minimum': 'maximum',
  'maximum': 'minimum',
  'argmin': 'argmax',
  'argmax': 'argmin',
}
_LEFT_OUT_CALLS = frozenset(
  ('print', 'warn', 'sleep', 'dataclass', 'lru_cache')
)
_LEFT_OUT_OWNERS = frozenset(('logging', 'logger', '_logger'))
_LEFT_OUT_FIELDS = frozenset(('annotation', 'returns', 'msg'))
# `+ 1` or `- 1` can be appended to these without parentheses.
_SIMPLE = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.UnaryOp)
_SILENT_TOKENS = (
  tokenize.COMMENT,
  tokenize.NL,
  tokenize.NEWLINE,
  tokenize.INDENT,
  tokenize.DEDENT,
  tokenize.ENCODING,
  tokenize.ENDMARKER,
)


@dataclasses.dataclass(frozen=True)
class Mutant:
  """A single change of a file.

  Attributes:
    path: the file, relative to the tree.
    lines: the first and last line of the statement, or of a block's header.
    line: the line of the change.
    start: the offset of the first replaced byte in the file.
    end: the offset after the last replaced byte.
    before: the replaced text.
    after: the new text.
  """

  path: str
  lines: Tuple[int, int]
  line: int
  start: int
  end: int
  before: str
  after: str

  def apply(self, source: bytes) -> bytes:
    """Returns the changed file."""
    return source[: self.start] + self.after.encode() + source[self.end :]

  def __str__(self) -> str:
    return f'{self.path}:{self.line} `{self.before}` -> `{self.after}`'


def find(path: str, source: bytes) -> List[List[Mutant]]:
  """Returns the mutants of a file, grouped by the token that they replace."""
  finder = _Finder(path, source)
  finder.visit(ast.parse(source))
  return list(finder.places.values())


def draw(
  packages: Mapping[str, Mapping[str, bytes]], number: int, seed: int
) -> List[Mutant]:
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
    package: sum(map(code_lines, files.values()))
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


def code_lines(source: bytes) -> int:
  """Counts lines, except for docstrings, comments and blank lines."""
  lines = set()
  for token in tokenize.tokenize(io.BytesIO(source).readline):
    if token.type not in _SILENT_TOKENS:
      lines.update(range(token.start[0], token.end[0] + 1))
  for node in ast.walk(ast.parse(source)):
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
      lines.difference_update(range(node.lineno, (node.end_lineno or 0) + 1))
  return len(lines)


class _Finder:
  """Collects the mutants of a file from its syntax tree."""

  def __init__(self, path: str, source: bytes):
    self.places: Dict[Tuple[int, int], List[Mutant]] = {}
    self._path = path
    self._source = source
    self._lines = source.splitlines(keepends=True)
    self._line_starts = [0]
    for line in self._lines:
      self._line_starts.append(self._line_starts[-1] + len(line))
    self._tokens = list(self._read_tokens())
    self._token_starts = [start for start, _, _ in self._tokens]
    self._statement = (1, 1)

  def visit(self, node: ast.AST) -> None:
    """Collects the mutants of a node and its descendants."""
    if _is_left_out(node):
      return
    outer_statement = self._statement
    if isinstance(node, ast.stmt):
      self._statement = _lines_of(node)
    find_in = getattr(self, f'_find_in_{type(node).__name__}', None)
    if find_in is not None:
      find_in(node)
    for child in _children(node):
      self.visit(child)
    self._statement = outer_statement

  def _find_in_Compare(self, node: ast.Compare) -> None:
    sides = [node.left, *node.comparators]
    for left, right in zip(sides[:-1], sides[1:], strict=True):
      self._add_operator(left, right, _COMPARISONS)

  def _find_in_BinOp(self, node: ast.BinOp) -> None:
    if not (_is_text(node.left) or _is_text(node.right)):
      self._add_operator(node.left, node.right, _ARITHMETIC)

  def _find_in_AugAssign(self, node: ast.AugAssign) -> None:
    if not _is_text(node.value):
      assigning = {
        f'{operator}=': tuple(f'{other}=' for other in others)
        for operator, others in _ARITHMETIC.items()
      }
      self._add_operator(node.target, node.value, assigning)

  def _find_in_BoolOp(self, node: ast.BoolOp) -> None:
    other = {'and': ('or',), 'or': ('and',)}
    for left, right in zip(node.values[:-1], node.values[1:], strict=True):
      self._add_operator(left, right, other)

  def _find_in_UnaryOp(self, node: ast.UnaryOp) -> None:
    start = self._span(node)[0]
    if isinstance(node.op, ast.Not):
      self._add(start, start + len('not'), [''])
    elif isinstance(node.op, ast.USub):
      self._add(start, start + len('-'), ['+'])

  def _find_in_Constant(self, node: ast.Constant) -> None:
    value = node.value
    if isinstance(value, bool):
      self._add(*self._span(node), [repr(not value)])
    elif isinstance(value, (int, float)):
      others = (1 - value, 2) if value in (0, 1) else (value + 1, value - 1)
      kind = type(value)
      texts = [repr(kind(other)) for other in others if other != value]
      self._add(*self._span(node), texts[:1] if value == 0 else texts)

  def _find_in_Slice(self, node: ast.Slice) -> None:
    self._add_ends([node.lower, node.upper])

  def _find_in_Call(self, node: ast.Call) -> None:
    if isinstance(node.func, ast.Name) and node.func.id == 'range':
      self._add_ends(node.args)
    name = _name_of(node.func)
    if name in _EXTREMES:
      end = self._span(node.func)[1]
      self._add(end - len(name), end, [_EXTREMES[name]])

  def _add_ends(self, ends: Sequence[ast.AST | None]) -> None:
    for end in ends:
      if isinstance(end, _SIMPLE) or _is_sum(end):
        start, stop = self._span(end)
        text = self._source[start:stop].decode()
        self._add(start, stop, [f'{text} + 1', f'{text} - 1'])

  def _add_operator(self, left, right, others) -> None:
    """Adds the mutants of the operator between two operands."""
    first = bisect.bisect_left(self._token_starts, self._span(left)[1])
    last = bisect.bisect_left(self._token_starts, self._span(right)[0])
    words = [word for word in self._tokens[first:last] if word[2] not in '()']
    text = ' '.join(word for _, _, word in words)
    if text in others:
      self._add(words[0][0], words[-1][1], others[text])

  def _add(self, start: int, end: int, others: Sequence[str]) -> None:
    line = bisect.bisect_right(self._line_starts, start)
    before = self._source[start:end].decode()
    self.places[start, end] = [
      Mutant(self._path, self._statement, line, start, end, before, after)
      for after in others
    ]

  def _span(self, node) -> Tuple[int, int]:
    return (
      self._line_starts[node.lineno - 1] + node.col_offset,
      self._line_starts[node.end_lineno - 1] + node.end_col_offset,
    )

  def _read_tokens(self) -> Iterator[Tuple[int, int, str]]:
    for token in tokenize.tokenize(io.BytesIO(self._source).readline):
      if token.type not in _SILENT_TOKENS:
        start, end = map(self._offset, (token.start, token.end))
        yield start, end, token.string

  def _offset(self, place: Tuple[int, int]) -> int:
    """Converts a row and a column, in characters, to a byte offset."""
    row, column = place
    before = self._lines[row - 1].decode()[:column]
    return self._line_starts[row - 1] + len(before.encode())


def _children(node: ast.AST) -> Iterator[ast.AST]:
  for name, value in ast.iter_fields(node):
    if name not in _LEFT_OUT_FIELDS:
      values = value if isinstance(value, list) else [value]
      yield from (one for one in values if isinstance(one, ast.AST))


def _is_left_out(node: ast.AST) -> bool:
  if isinstance(node, ast.Call):
    owner = getattr(node.func, 'value', None)
    return (
      _name_of(node.func) in _LEFT_OUT_CALLS
      or _name_of(owner) in _LEFT_OUT_OWNERS
    )
  if isinstance(node, ast.Assign):
    return _name_of(node.targets[0]) == '__all__'
  if isinstance(node, ast.If):
    return _name_of(node.test) == 'TYPE_CHECKING'
  if isinstance(node, ast.keyword):
    return node.arg == 'timeout'
  return isinstance(node, (ast.JoinedStr, ast.Raise))


def _lines_of(node: ast.stmt) -> Tuple[int, int]:
  """Returns the lines of a statement, or of the header of a block."""
  body = getattr(node, 'body', None)
  if body:
    return node.lineno, max(node.lineno, body[0].lineno - 1)
  return node.lineno, node.end_lineno or node.lineno


def _name_of(node: ast.AST | None) -> str:
  """Returns the last part of a dotted name, or '' for other nodes."""
  return getattr(node, 'id', None) or getattr(node, 'attr', None) or ''


def _is_text(node: ast.AST) -> bool:
  is_constant = isinstance(node, ast.Constant) and isinstance(node.value, str)
  return is_constant or isinstance(node, ast.JoinedStr)


def _is_sum(node: ast.AST | None) -> bool:
  return isinstance(node, ast.BinOp) and isinstance(
    node.op, (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv)
  )
