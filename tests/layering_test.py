"""The core, and the settings, import nothing of the Acme stack."""

import pathlib
import subprocess
import sys

import pytest

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
# Imports `argv[1:]` where the blocked packages cannot be imported. They are
# blocked before bt_acme is there, so that its own hook finds nothing to help;
# dm_env, which rlax imports and the core may not, behind rlax.
_PROGRAM = f"""
import importlib, sys
for name in {_BLOCKED!r}:
  sys.modules[name] = None
import rlax
sys.modules['dm_env'] = None
for name in sys.argv[1:]:
  importlib.import_module(name)
"""


def _modules():
  """Every module that has to do without the stack, by its dotted name."""
  paths = [_PACKAGE / 'config.py', *sorted((_PACKAGE / 'core').rglob('*.py'))]
  parts = [path.relative_to(_PACKAGE.parent).with_suffix('') for path in paths]
  return ['.'.join(part.parts).removesuffix('.__init__') for part in parts]


def _import(modules):
  return subprocess.run(
    [sys.executable, '-c', _PROGRAM, *modules],
    capture_output=True,
    text=True,
    check=False,
  )


def test_every_module_of_the_core_is_found():
  modules = _modules()
  assert 'bt_acme.config' in modules
  assert 'bt_acme.core' in modules
  assert 'bt_acme.core.behavior_transfer.flights' in modules
  assert len(modules) == len(set(modules))


def test_the_core_imports_without_the_stack():
  result = _import(_modules())
  assert result.returncode == 0, result.stderr


@pytest.mark.parametrize('name', [*_BLOCKED, 'dm_env'])
def test_a_blocked_package_would_be_noticed(name):
  result = _import([name])
  assert result.returncode != 0
  assert f'import of {name} halted' in result.stderr
