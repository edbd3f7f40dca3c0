"""Checks whether the full stack (Acme, Launchpad, Reverb) is installed."""

import importlib.util
import platform
import sys

# The package of each module of the full stack.
_PACKAGES = {
  'acme': 'dm-acme',
  'launchpad': 'dm-launchpad',
  'reverb': 'dm-reverb',
  'tensorflow': 'tensorflow-cpu',
}


def require_full_stack() -> None:
  """Checks, without imports, that Acme, Launchpad and Reverb are installed.

  Raises:
    ImportError: if a package is missing. The message names the supported Python
      version and the installation command.
  """
  missing = [
    package
    for module, package in _PACKAGES.items()
    if importlib.util.find_spec(module) is None
  ]
  if not missing:
    return
  here = f'Python {sys.version_info.major}.{sys.version_info.minor}'
  raise ImportError(
    f'bt_acme.agents needs {", ".join(missing)}, which support only Python '
    f'3.10 on Linux x86_64 (this is {here} on {platform.system()} '
    f'{platform.machine()}). Run `pip install .` with such a Python in the '
    'checkout of bt_acme. bt_acme.core works without these packages.'
  )
