"""The rules of who may import whom."""

import sys
from typing import Iterator, Optional, Tuple

from tests import import_graph

# From the bottom. A module may import its own room and rooms further down, but
# not the other rooms of its layer. The longest name that fits is a module's
# room; '=' in front means the module alone, without what lies in it.
LAYERS = (
  (
    *('bt_acme.config', 'bt_acme.compat', 'bt_acme.files'),
    *('bt_acme.compilation_cache', 'bt_acme.installation', 'bt_acme.version'),
  ),
  ('bt_acme.untrusted',),
  ('bt_acme.core',),
  (
    'bt_acme.acting.behavior',
    'bt_acme.acting.transition',
    'bt_acme.environments',
  ),
  ('bt_acme.replay',),
  ('bt_acme.assembly',),
  ('bt_acme.learner_assembly',),
  ('bt_acme.learner',),
  ('bt_acme.acting', 'bt_acme.behaviors'),
  ('bt_acme.agents', 'bt_acme.evaluation'),
  ('bt_acme.runtime',),
  ('bt_acme.cli',),
  ('bt_acme.api',),
  ('launch', '=bt_acme'),
)

# These are pure: they import each other downward, and few packages.
PURE = ('bt_acme.config', 'bt_acme.core')
_PACKAGES_OF_PURE = {
  *sys.stdlib_module_names,
  *('chex', 'haiku', 'jax', 'numpy', 'optax', 'rlax'),
}

# The full stack, which exists for Python 3.10 only.
STACK = (
  'acme',
  'courier',
  'gym',
  'launchpad',
  'reverb',
  'sonnet',
  'tensorflow',
)
# These, and all that they import, run without the stack.
WITHOUT_STACK = (
  'bt_acme.api',
  'bt_acme.acting',
  'bt_acme.behaviors',
  'bt_acme.config',
  'bt_acme.core',
  'bt_acme.environments',
  'bt_acme.evaluation.evaluator',
  'bt_acme.replay.in_process',
  'bt_acme.runtime.engines.in_process',
)

# Modules that may import inside functions, and why.
MAY_IMPORT_LATE = {
  'bt_acme': 'takes no second before something of it is used',
  'bt_acme.compat': 'changes JAX before and while acme is first imported',
  'bt_acme.cli.run': 'Launchpad and Reverb take seconds, and need Python 3.10',
  'bt_acme.environments.registry': 'an actor loads one family of environments',
}


def is_in(module: str, rooms: Tuple[str, ...]) -> bool:
  return any(module == room or module.startswith(f'{room}.') for room in rooms)


def _place(module: str) -> Optional[Tuple[int, str]]:
  """Layer and room of a module; None if no layer lists it."""
  fitting = [
    (layer, room)
    for layer, rooms in enumerate(LAYERS)
    for room in rooms
    if room == f'={module}' or is_in(module, (room,))
  ]
  return max(fitting, key=lambda place: len(place[1]), default=None)


def _package(dotted: str) -> str:
  return dotted.partition('.')[0]


def upward_imports(graph: import_graph.Graph) -> Iterator[str]:
  """Imports from a lower layer to a higher one, or to a room beside it."""
  for one in graph.imports:
    if one.imported not in graph.modules:
      continue
    here, there = _place(one.importer), _place(one.imported)
    if here is None or there is None:
      missing = one.importer if here is None else one.imported
      yield f'{missing} has no layer'
    elif here[1] != there[1] and here[0] <= there[0]:
      yield f'{one.importer}:{one.line} imports {one.imported}'


def late_imports(graph: import_graph.Graph) -> Iterator[str]:
  """Imports that wait for a call, or for a type checker."""
  for one in graph.imports:
    if one.is_late or not one.imported:
      if one.importer not in MAY_IMPORT_LATE:
        yield f'{one.importer}:{one.line} imports {one.imported or "a name"}'
  for name in sorted(graph.type_checking):
    yield f'{name} has TYPE_CHECKING'


def impure_imports(graph: import_graph.Graph) -> Iterator[str]:
  """Imports of the pure modules that are not pure."""
  for one in graph.imports:
    if is_in(one.importer, PURE):
      own = is_in(one.imported, PURE)
      if not own and _package(one.imported) not in _PACKAGES_OF_PURE:
        yield f'{one.importer}:{one.line} imports {one.imported}'


def imports_of_the_stack(graph: import_graph.Graph) -> Iterator[str]:
  """Where modules that run without the stack would load it."""
  edges = graph.edges()
  for one in graph.imports:  # These wait until the stack is asked for.
    if one.is_late and one.importer in MAY_IMPORT_LATE:
      edges[one.importer].discard(one.imported)
  for name in graph.modules:  # Importing a module runs its packages first.
    edges[name] |= {
      package
      for package in graph.modules
      if name.startswith(f'{package}.') and package != name
    }
  starts = {m for m in graph.modules if is_in(m, WITHOUT_STACK)}
  loaded = starts.union(*(import_graph.reachable(edges, m) for m in starts))
  for one in graph.imports:
    if (
      one.importer in loaded
      and _package(one.imported) in STACK
      and one.importer not in MAY_IMPORT_LATE
    ):
      yield f'{one.importer}:{one.line} imports {one.imported}'
