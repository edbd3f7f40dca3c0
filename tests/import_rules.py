"""Rules for imports between packages."""

import sys

# The layers from bottom to top. A module may import its own package and
# packages of lower layers, but no other package of its layer. The longest
# matching name is the package of a module; a leading '=' matches a module
# without its submodules.
LAYERS = (
  (
    *('bt_acme.config', 'bt_acme.compat', 'bt_acme.files'),
    *('bt_acme.compilation_cache', 'bt_acme.installation', 'bt_acme.version'),
  ),
  ('bt_acme.core',),
  ('bt_acme.untrusted',),
  ('bt_acme.acting.behavior', 'bt_acme.environments'),
  ('bt_acme.replay',),
  ('bt_acme.assembly',),
  ('bt_acme.learner_assembly',),
  ('bt_acme.acting', 'bt_acme.behaviors'),
  ('bt_acme.memory_check',),
  ('bt_acme.learner',),
  ('bt_acme.agents', 'bt_acme.evaluation'),
  ('bt_acme.runtime',),
  ('bt_acme.launching',),
  ('bt_acme.api',),
  ('bt_acme.cli',),
  ('launch', '=bt_acme'),
)

# Pure packages: they import each other downward, and few other packages.
PURE = ('bt_acme.config', 'bt_acme.core')
_PACKAGES_OF_PURE = {
  *sys.stdlib_module_names,
  *('chex', 'haiku', 'jax', 'numpy', 'optax', 'rlax'),
}

# The full stack, which is available only for Python 3.10.
STACK = 'acme courier gym launchpad reverb sonnet tensorflow'.split()
# These modules, and everything that they import, run without the stack.
WITHOUT_STACK = (
  *('bt_acme.api', 'bt_acme.acting', 'bt_acme.behaviors', 'bt_acme.config'),
  *('bt_acme.core', 'bt_acme.environments', 'bt_acme.evaluation.evaluator'),
  *('bt_acme.replay.in_process', 'bt_acme.runtime.engines.in_process'),
)

# The learner's packages cost a process 0.7 s and 43 MB. These modules, and
# everything that they import, only act and do without the packages.
LEARNERS_OWN = ('distrax', 'optax', 'rlax', 'tensorflow_probability')
ONLY_ACTING = (
  *('bt_acme.acting', 'bt_acme.behaviors', 'bt_acme.replay.sequences'),
  *('bt_acme.runtime.actor_node', 'bt_acme.runtime.coordinator'),
  *('bt_acme.runtime.evaluator_node', 'bt_acme.runtime.inference_node'),
)

# Packages that create objects from bytes, and so may execute code in the bytes.
UNPICKLERS = (
  *('pickle', '_pickle', 'cPickle', 'cloudpickle', 'dill', 'joblib', 'marshal'),
  *('shelve', 'msgpack', 'yaml', 'torch', 'flax', 'orbax', 'jsonpickle'),
)

# Modules that may import inside functions, and why.
MAY_IMPORT_LATE = {
  'bt_acme': 'must load in less than a second',
  'bt_acme.compat': 'patches JAX before and during the first import of acme',
  'bt_acme.launching.starting': 'Launchpad and Reverb are slow to import',
  'bt_acme.environments.registry': 'an actor loads one family of environments',
}


def is_in(module, packages):
  return f'{module}.'.startswith(tuple(f'{package}.' for package in packages))


def place(module):
  """Returns layer and package of a module, or None if no layer lists it."""
  fitting = [
    (layer, package)
    for layer, packages in enumerate(LAYERS)
    for package in packages
    if package == f'={module}' or is_in(module, (package,))
  ]
  return max(fitting, key=lambda place: len(place[1]), default=None)


def is_upward(one):
  """Whether it imports a higher layer, or another package of the layer."""
  here, there = place(one.importer), place(one.imported)
  return here and there and here[1] != there[1] and here[0] <= there[0]


def is_late(one):
  """Whether it imports inside a function, or only for type checkers."""
  is_allowed = one.importer in MAY_IMPORT_LATE
  return (one.is_late or not one.imported) and not is_allowed


def is_impure(one):
  """Whether a pure package imports another package."""
  if not is_in(one.importer, PURE) or is_in(one.imported, PURE):
    return False
  return one.imported.partition('.')[0] not in _PACKAGES_OF_PURE


def unpickles(one):
  """Whether it imports a package that unpickles."""
  return is_in(one.imported, UNPICKLERS)
