"""Import graph of a source tree, read from its syntax."""

import ast
import graphlib
import importlib.util
from typing import NamedTuple

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class Import(NamedTuple):
  """An import.

  Attributes:
    importer: dotted name of the importing module.
    imported: dotted name of the imported module; empty if it is only known at
      run time.
    line: line of the import.
    is_late: whether the import is inside a function, or for type checkers only.
  """

  importer: str
  imported: str
  line: int
  is_late: bool


def read(root, folders):
  """Reads the Python files in some directories of `root`.

  Returns:
    The dotted names of all modules, and all imports, also of other packages.
  """
  paths = {
    _name(path.relative_to(root)): path
    for folder in folders
    for path in sorted((root / folder).rglob('*.py'))
  }
  imports = []
  for name, path in paths.items():
    text = path.read_text()
    package = name if path.name == '__init__.py' else name.rpartition('.')[0]
    imports += _imports(name, package, ast.parse(text), paths)
    if 'TYPE_CHECKING' in text:
      imports.append(Import(name, 'TYPE_CHECKING', 0, True))
  return set(paths), imports


def edges(modules, imports):
  """Returns the modules of the tree that each module imports."""
  found = {name: set() for name in modules}
  for one in imports:
    if one.imported in modules and one.imported != one.importer:
      found[one.importer].add(one.imported)
  return found


def cycles(modules, imports):
  """Yields the modules of a cycle, if there are cycles."""
  graph = edges(sorted(modules), imports)
  graph = {name: sorted(found) for name, found in graph.items()}
  try:
    graphlib.TopologicalSorter(graph).prepare()
  except graphlib.CycleError as error:
    yield ' imports '.join(reversed(error.args[1]))


def _name(path):
  return '.'.join(path.with_suffix('').parts).removesuffix('.__init__')


def _imports(name, package, tree, modules):
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
      yield Import(name, imported, node.lineno, node in in_functions)
  if is_dynamic:  # Any string with the name of a module may be imported.
    for node in ast.walk(tree):
      if isinstance(node, ast.Constant) and node.value in modules:
        yield Import(name, node.value, node.lineno, True)


def _imported(node, package, modules):
  """Returns the dotted names that a statement or call imports."""
  if isinstance(node, ast.Import):
    return [alias.name for alias in node.names]
  if isinstance(node, ast.ImportFrom):
    relative = '.' * node.level + (node.module or '')
    base = importlib.util.resolve_name(relative, package)
    full = [f'{base}.{alias.name}' for alias in node.names]
    return [name if name in modules else base for name in full]
  if isinstance(node, ast.Call):
    called = getattr(node.func, 'attr', getattr(node.func, 'id', ''))
    if called in ('__import__', 'import_module'):
      name = node.args[0]
      return [name.value if isinstance(name, ast.Constant) else '']
  return []
