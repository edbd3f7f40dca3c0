"""Import graph of a source tree, read from its syntax."""

import ast
import pathlib
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence, Set

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Import(NamedTuple):
  """An import.

  Attributes:
    importer: dotted name of the importing module.
    imported: dotted name of the imported module; empty if it is only known at
      run time.
    line: line of the import.
    is_late: whether the import is inside a function.
  """

  importer: str
  imported: str
  line: int
  is_late: bool


class Graph(NamedTuple):
  """A tree of modules.

  Attributes:
    modules: dotted names of all modules.
    imports: all imports, including those of other packages.
    type_checking: modules that mention TYPE_CHECKING.
  """

  modules: Set[str]
  imports: List[Import]
  type_checking: Set[str]

  def edges(self) -> Dict[str, Set[str]]:
    """Returns the modules of this tree that each module imports."""
    edges: Dict[str, Set[str]] = {name: set() for name in self.modules}
    for one in self.imports:
      if one.imported in self.modules and one.imported != one.importer:
        edges[one.importer].add(one.imported)
    return edges


def read(root: pathlib.Path, folders: Sequence[str]) -> Graph:
  """Reads the graph of the Python files in some directories of `root`."""
  paths = {
    _name(path.relative_to(root)): path
    for folder in folders
    for path in sorted((root / folder).rglob('*.py'))
  }
  imports: List[Import] = []
  type_checking = set()
  for name, path in paths.items():
    text = path.read_text()
    package = name if path.name == '__init__.py' else name.rpartition('.')[0]
    imports += _imports(name, package, ast.parse(text), set(paths))
    if 'TYPE_CHECKING' in text:
      type_checking.add(name)
  return Graph(set(paths), imports, type_checking)


def cycles(edges: Dict[str, Set[str]]) -> List[List[str]]:
  """Returns sorted groups of modules that reach each other."""
  reached = {name: reachable(edges, name) for name in edges}
  groups = {
    tuple(sorted(m for m in reached[name] if name in reached[m]))
    for name in edges
    if name in reached[name]
  }
  return [list(group) for group in sorted(groups)]


def reachable(edges: Dict[str, Set[str]], start: str) -> Set[str]:
  """Returns the modules that a module imports, directly or indirectly."""
  found: Set[str] = set()
  frontier = [start]
  while frontier:
    new = edges.get(frontier.pop(), set()) - found
    found |= new
    frontier += new
  return found


def _name(path: pathlib.Path) -> str:
  return '.'.join(path.with_suffix('').parts).removesuffix('.__init__')


def _imports(
  name: str, package: str, tree: ast.AST, modules: Set[str]
) -> Iterator[Import]:
  in_functions = {
    inner
    for node in ast.walk(tree)
    if isinstance(node, _FUNCTIONS)
    for inner in ast.walk(node)
  }
  is_dynamic = False
  for node in ast.walk(tree):
    for imported in _imported(node, package, modules):
      is_dynamic |= isinstance(node, ast.Call)
      line = getattr(node, 'lineno', 0)
      yield Import(name, imported, line, node in in_functions)
  if is_dynamic:  # Any string with the name of a module may be imported.
    for node in ast.walk(tree):
      if isinstance(node, ast.Constant) and node.value in modules:
        yield Import(name, node.value, node.lineno, True)


def _imported(node: ast.AST, package: str, modules: Set[str]) -> List[str]:
  """Returns the dotted names that a statement or call imports."""
  if isinstance(node, ast.Import):
    return [alias.name for alias in node.names]
  if isinstance(node, ast.ImportFrom):
    base = _base(node, package)
    full = [f'{base}.{alias.name}' for alias in node.names]
    return [name if name in modules else base for name in full]
  if isinstance(node, ast.Call) and _called(node) in (
    '__import__',
    'import_module',
  ):
    first: Optional[ast.expr] = node.args[0] if node.args else None
    is_known = isinstance(first, ast.Constant) and isinstance(first.value, str)
    return [first.value if is_known else '']
  return []


def _base(node: ast.ImportFrom, package: str) -> str:
  """Returns the absolute dotted name after `from`."""
  if not node.level:
    return node.module or ''
  parents = package.split('.')
  parents = parents[: len(parents) - node.level + 1]
  return '.'.join([*parents, node.module] if node.module else parents)


def _called(node: ast.Call) -> str:
  """Returns the last part of the name of the called function."""
  if isinstance(node.func, ast.Attribute):
    return node.func.attr
  return node.func.id if isinstance(node.func, ast.Name) else ''
