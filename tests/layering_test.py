"""Tests the import order, and that some packages do not need the Acme stack.

`bt_acme` and `launch` are parsed instead of imported, so that every module is
checked. Each rule is also tested on small trees that violate it.
"""

import re

import pytest

from tests import import_graph, import_rules, python


@pytest.fixture(name='tree', scope='module')
def read_tree():
  return import_graph.read(python.ROOT, ('bt_acme', 'launch'))


def test_every_module_is_read(tree):
  edges = import_graph.edges(*tree)
  assert {
    *('bt_acme', 'bt_acme.config', 'bt_acme.core.behavior_transfer.flights'),
    *('bt_acme.runtime.engines.in_process', 'launch.run_bt'),
  } < edges.keys()
  assert 'bt_acme.core.networks' in edges['bt_acme.assembly']
  # Environments are imported by strings, which count as well.
  registry = edges['bt_acme.environments.registry']
  assert 'bt_acme.environments.atari' in registry


_CHECKS = ('is_upward', 'is_late', 'is_impure', 'unpickles', 'cycle', 'new')


def _violations(check, modules, imports):
  if check == 'cycle':
    return set(import_graph.cycles(modules, imports))
  if check == 'new':
    return {name for name in modules if import_rules.place(name) is None}
  return {
    f'{one.importer}:{one.line} imports {one.imported or "a name"}'
    for one in imports
    if getattr(import_rules, check)(one)
  }


@pytest.mark.parametrize('check', _CHECKS)
def test_nothing_violates_a_rule(tree, check):
  found = sorted(_violations(check, *tree))
  assert not found, '\n'.join(found)


def test_nodes_do_not_know_launchpad(tree):
  modules, imports = tree
  pattern = re.compile(r'bt_acme\.runtime\.(\w+_node|node|coordinator)')
  nodes = set(filter(pattern.fullmatch, modules))
  assert len(nodes) == 6
  users = {
    one.importer
    for one in imports
    if import_rules.is_in(one.imported, ('launchpad', 'courier'))
  }
  assert 'bt_acme.runtime.program' in users and not users & nodes


def test_the_rules_are_about_existing_modules(tree):
  modules, imports = tree
  late = {one.importer for one in imports if one.is_late}
  assert set(import_rules.MAY_IMPORT_LATE) <= late
  assert set(import_rules.ONLY_ACTING) <= modules
  packages = [package for layer in import_rules.LAYERS for package in layer]
  assert len(set(packages)) == len(packages)


_VIOLATIONS = {
  'core/a': 'from bt_acme.core.b import B\nimport acme, jax.numpy, os.path',
  'core/b': 'from . import c\nfrom bt_acme import assembly',
  'core/c': 'from pickle import loads\ndef f():\n  from bt_acme.core import a',
  'core/d': 'import typing\nif typing.TYPE_CHECKING:\n  import numpy',
  'core/e': 'import importlib\nX = importlib.import_module(NAME)',
  'core/f': 'import importlib\nimportlib.import_module("bt_acme.files")',
  'acting/behavior': 'from bt_acme.acting import other',
  'acting/other': '',
  'acting/policy': 'from bt_acme import assembly',
  'agents/bt': 'import bt_acme.evaluation.plots',
  'assembly': 'from bt_acme.acting import behavior',
  'compat': 'def f():\n  import joblib.x',
  'evaluation/plots': '',
  'files': 'import dm_env',
  'new': 'from bt_acme.core import a',
}
_FOUND = {
  'cycle': {
    'bt_acme.core.b imports bt_acme.core.c imports bt_acme.core.a imports '
    'bt_acme.core.b',
  },
  'new': {'bt_acme.new'},
  'is_upward': {
    'bt_acme.acting.behavior:1 imports bt_acme.acting.other',
    'bt_acme.agents.bt:1 imports bt_acme.evaluation.plots',
    'bt_acme.core.b:2 imports bt_acme.assembly',
  },
  'is_late': {
    'bt_acme.core.c:3 imports bt_acme.core.a',
    'bt_acme.core.d:0 imports TYPE_CHECKING',
    'bt_acme.core.e:2 imports a name',
    'bt_acme.core.f:2 imports bt_acme.files',
  },
  'is_impure': {
    'bt_acme.core.a:2 imports acme',
    'bt_acme.core.b:2 imports bt_acme.assembly',
    'bt_acme.core.d:0 imports TYPE_CHECKING',
    'bt_acme.core.e:2 imports a name',
    'bt_acme.core.f:2 imports bt_acme.files',
  },
  'unpickles': {
    'bt_acme.compat:2 imports joblib.x',
    'bt_acme.core.c:1 imports pickle',
  },
}


@pytest.mark.parametrize('check', _CHECKS)
def test_a_violation_is_found(tmp_path, check):
  for name, text in _VIOLATIONS.items():
    path = tmp_path / 'bt_acme' / f'{name}.py'
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
  tree = import_graph.read(tmp_path, ['bt_acme'])
  assert _violations(check, *tree) == _FOUND[check]


# Tries to import `argv[2:]` while the stack and the packages `argv[1]` are
# blocked, and prints the modules that failed. The stack is blocked before
# bt_acme is loaded, so that its import hook has no effect. The other packages
# are blocked after the import of rlax, which may need them.
_PROGRAM = f"""
import importlib, sys, traceback
for name in {import_rules.STACK!r}:
  sys.modules[name] = None
blocked = sys.argv[1].split()
if 'rlax' not in blocked:
  import rlax
for name in blocked:
  sys.modules[name] = None
for name in sys.argv[2:]:
  try:
    importlib.import_module(name)
  except ImportError:
    traceback.print_exc()
    print(name)
"""


@pytest.mark.parametrize(
  'packages, blocked',
  [
    (import_rules.PURE, ('dm_env', 'gymnasium')),
    (('bt_acme.acting', 'bt_acme.config'), ('zstandard', 'ale_py')),
    (import_rules.WITHOUT_STACK, ()),
    (import_rules.ONLY_ACTING, import_rules.LEARNERS_OWN),
  ],
)
def test_modules_import_without_packages(tree, packages, blocked):
  modules, _ = tree
  imported = sorted(x for x in modules if import_rules.is_in(x, packages))
  missing = [*import_rules.STACK, *blocked]
  done = python.check('-c', _PROGRAM, ' '.join(blocked), *imported, *missing)
  assert done.stdout.split() == missing, done.stderr
