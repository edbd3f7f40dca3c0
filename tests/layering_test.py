"""Tests the import order, and that some packages do not need the Acme stack.

`bt_acme` and `launch` are parsed instead of imported, so that every module is
checked. Each rule is also tested on small trees that violate it.
"""

import pathlib
import re
from typing import List, Mapping

import pytest

from tests import import_graph, import_rules, python

_ROOT = pathlib.Path(__file__).parents[1]
_FOLDERS = ('bt_acme', 'launch')


@pytest.fixture(scope='module')
def graph():
  return import_graph.read(_ROOT, _FOLDERS)


def test_every_module_is_read(graph):
  assert {
    'bt_acme',
    'bt_acme.config',
    'bt_acme.core.behavior_transfer.flights',
    'bt_acme.runtime.engines.in_process',
    'launch.run_bt',
  } < graph.modules
  assert 'bt_acme.core' in graph.edges()['bt_acme.assembly'] or any(
    name.startswith('bt_acme.core.')
    for name in graph.edges()['bt_acme.assembly']
  )
  # Environments are imported by strings, which count as well.
  registry = graph.edges()['bt_acme.environments.registry']
  assert 'bt_acme.environments.atari' in registry


_CHECKS = {
  'upward': import_rules.upward_imports,
  'late': import_rules.late_imports,
  'impure': import_rules.impure_imports,
  'stack': import_rules.imports_of_the_stack,
  'learner': import_rules.imports_of_the_learners_own,
  'unpickles': import_rules.imports_that_unpickle,
  'cycle': lambda graph: map(str, import_graph.cycles(graph.edges())),
}


@pytest.mark.parametrize('check', _CHECKS)
def test_nothing_violates_a_rule(graph, check):
  found = sorted(set(_CHECKS[check](graph)))
  assert not found, '\n'.join(found)


def test_nodes_do_not_know_launchpad(graph):
  pattern = re.compile(r'bt_acme\.runtime\.(\w+_node|node|coordinator)')
  nodes = set(filter(pattern.fullmatch, graph.modules))
  assert len(nodes) == 6
  users = {
    one.importer
    for one in graph.imports
    if import_rules.is_in(one.imported, ('launchpad', 'courier'))
  }
  assert 'bt_acme.runtime.program' in users and not users & nodes


def test_the_rules_are_about_existing_modules(graph):
  late = {one.importer for one in graph.imports if one.is_late}
  assert set(import_rules.MAY_IMPORT_LATE) <= late
  assert set(import_rules.ONLY_ACTING) <= graph.modules
  packages = [package for layer in import_rules.LAYERS for package in layer]
  assert len(set(packages)) == len(packages)


def _graph_of(
  tmp_path: pathlib.Path, files: Mapping[str, str]
) -> import_graph.Graph:
  """Returns the graph of a tree with the given modules of `bt_acme`."""
  for name, text in files.items():
    path = tmp_path / 'bt_acme' / f'{name}.py'
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
  return import_graph.read(tmp_path, ['bt_acme'])


@pytest.mark.parametrize(
  'check, files, found',
  [
    (
      'cycle',
      {'core/a': 'import bt_acme.core.b', 'core/b': 'from . import a'},
      ["['bt_acme.core.a', 'bt_acme.core.b']"],
    ),
    (
      'cycle',
      {
        'core/a': 'from bt_acme.core.b import B',
        'core/b': 'from bt_acme.core import c',
        'core/c': 'def f():\n  from bt_acme.core import a',
      },
      ["['bt_acme.core.a', 'bt_acme.core.b', 'bt_acme.core.c']"],
    ),
    (
      'upward',
      {
        'core/a': 'from bt_acme import assembly',
        'acting/behavior': 'from bt_acme.acting import policy',
        'acting/policy': 'from bt_acme import assembly',
        'assembly': 'from bt_acme.acting import behavior',
        'agents/bt': 'import bt_acme.evaluation.plots',
        'evaluation/plots': '',
        'new': 'from bt_acme.core import a',
      },
      [
        'bt_acme.acting.behavior:1 imports bt_acme.acting.policy',
        'bt_acme.agents.bt:1 imports bt_acme.evaluation.plots',
        'bt_acme.core.a:1 imports bt_acme.assembly',
        'bt_acme.new has no layer',
      ],
    ),
    (
      'late',
      {
        'core/a': 'import typing\nif typing.TYPE_CHECKING:\n  import numpy',
        'core/b': 'import importlib\nX = importlib.import_module(NAME)',
        'core/c': 'import jax\ndef f():\n  import numpy',
        'compat': 'def f():\n  import jax',
      },
      [
        'bt_acme.core.a has TYPE_CHECKING',
        'bt_acme.core.b:2 imports a name',
        'bt_acme.core.c:3 imports numpy',
      ],
    ),
    (
      'impure',
      {
        'core/a': 'import acme\nimport jax.numpy\nimport os.path',
        'config/b': 'from bt_acme import files\nfrom scipy import stats',
        'files': 'import dm_env',
      },
      [
        'bt_acme.config.b:1 imports bt_acme.files',
        'bt_acme.config.b:2 imports scipy',
        'bt_acme.core.a:1 imports acme',
      ],
    ),
    (
      'stack',
      {
        'acting/a': 'from bt_acme.replay import b',
        'replay/__init__': 'import reverb',
        'replay/b': 'import numpy',
        'agents/c': 'import acme.jax',
      },
      ['bt_acme.replay:1 imports reverb'],
    ),
    (
      'learner',
      {
        'acting/a': 'from bt_acme.core import b',
        'core/b': 'import rlax',
        'learner': 'import optax',
      },
      ['bt_acme.core.b:1 imports rlax'],
    ),
    (
      'unpickles',
      {
        'core/a': 'import json, cloudpickle as c',
        'core/b': 'from pickle import loads\ndef f():\n  import joblib.x',
        'core/c': 'import importlib\nimportlib.import_module("pickle")',
      },
      [
        'bt_acme.core.a:1 imports cloudpickle',
        'bt_acme.core.b:1 imports pickle',
        'bt_acme.core.b:3 imports joblib.x',
        'bt_acme.core.c:2 imports pickle',
      ],
    ),
  ],
)
def test_a_violation_is_found(tmp_path, check, files, found):
  graph = _graph_of(tmp_path, files)
  assert sorted(set(_CHECKS[check](graph))) == found


# Tries to import `argv[2:]` while the stack and the packages `argv[1]` are
# blocked, and prints the modules that failed. The stack is blocked before
# bt_acme is loaded, so that its import hook has no effect. The other packages
# are blocked after the import of rlax, which may need them.
_PROGRAM = f"""
import importlib, sys, traceback
for name in {import_rules.STACK!r}:
  sys.modules[name] = None
import rlax
for name in sys.argv[1].split():
  sys.modules[name] = None
for name in sys.argv[2:]:
  try:
    importlib.import_module(name)
  except ImportError:
    traceback.print_exc()
    print(name)
"""


def _import(modules: List[str], blocked: str = 'dm_env gymnasium'):
  """Returns the modules that could not be imported, and the errors."""
  result = python.run('-c', _PROGRAM, blocked, *modules)
  assert result.returncode == 0, result.stderr
  return result.stdout.split(), result.stderr


def _modules_in(graph: import_graph.Graph, *packages: str) -> List[str]:
  return sorted(
    name for name in graph.modules if import_rules.is_in(name, packages)
  )


def test_the_core_imports_without_the_stack(graph):
  modules = _modules_in(graph, *import_rules.PURE)
  failed, errors = _import(modules)
  assert not failed, errors


def test_acting_imports_without_compression_and_games():
  failed, errors = _import(
    ['bt_acme.acting.policy', 'bt_acme.config.run'], blocked='zstandard ale_py'
  )
  assert not failed, errors


def test_runs_in_process_import_without_the_stack(graph):
  modules = _modules_in(graph, *import_rules.WITHOUT_STACK)
  failed, errors = _import(modules, blocked='')
  assert not failed, errors


def test_a_blocked_package_would_be_noticed():
  packages = [*import_rules.STACK, 'dm_env', 'gymnasium']
  failed, errors = _import(packages)
  assert failed == packages
  assert errors.count('halted; None in sys.modules') == len(packages)
