"""The core, and the settings, import nothing of the Acme stack.

Nor does acting, which `benchmarks.gpu` measures where there is only the core.
"""

import pathlib
import subprocess
import sys

import bt_acme

_PACKAGE = pathlib.Path(bt_acme.__file__).parent
_BLOCKED = (
  'acme',
  'courier',
  'gym',
  'gymnasium',
  'launchpad',
  'reverb',
  'sonnet',
  'tensorflow',
)
# Tries to import `argv[2:]` where the blocked packages cannot be imported, and
# says which failed. They are blocked before bt_acme is there, so that its own
# hook finds nothing to help; those of `argv[1]`, which rlax may import, behind
# rlax.
_PROGRAM = f"""
import importlib, sys, traceback
for name in {_BLOCKED!r}:
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


def _modules():
  """Every module that has to do without the stack, by its dotted name."""
  paths = [
    path
    for folder in ('config', 'core')
    for path in sorted((_PACKAGE / folder).rglob('*.py'))
  ]
  parts = [path.relative_to(_PACKAGE.parent).with_suffix('') for path in paths]
  return ['.'.join(part.parts).removesuffix('.__init__') for part in parts]


def _import(*modules, blocked='dm_env'):
  """Returns which modules could not be imported, and why."""
  result = subprocess.run(
    [sys.executable, '-c', _PROGRAM, blocked, *modules],
    capture_output=True,
    text=True,
    check=False,
  )
  assert result.returncode == 0, result.stderr
  return result.stdout.split(), result.stderr


def test_every_module_of_the_core_is_found():
  modules = _modules()
  assert 'bt_acme.config' in modules
  assert 'bt_acme.core' in modules
  assert 'bt_acme.core.behavior_transfer.flights' in modules
  assert len(modules) == len(set(modules))


def test_the_core_imports_without_the_stack():
  failed, errors = _import(*_modules())
  assert not failed, errors


def test_acting_imports_with_what_the_core_installs():
  failed, errors = _import(
    'bt_acme.acting.policy', 'bt_acme.config.run', blocked='zstandard ale_py'
  )
  assert not failed, errors


def test_a_blocked_package_would_be_noticed():
  packages = [*_BLOCKED, 'dm_env']
  failed, errors = _import(*packages)
  assert failed == packages
  assert errors.count('halted; None in sys.modules') == len(packages)
