"""Checks whether the full stack (Acme, Launchpad, Reverb) is installed."""

import importlib.util
import platform
import sys

# The modules of the full stack, and the package that each comes with.
_PACKAGES = {
  'acme': 'dm-acme',
  'launchpad': 'dm-launchpad',
  'reverb': 'dm-reverb',
  'tensorflow': 'tensorflow-cpu',
}


def require_full_stack() -> None:
  """Checks, before they are imported, that Acme, Launchpad and Reverb exist.

  Raises:
    ImportError: if one is missing. The message says which Python has them and
      how to install them.
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
    f'bt_acme.agents needs {", ".join(missing)}, which exist for Python 3.10 '
    f'on Linux x86_64 only (this is {here} on {platform.system()} '
    f'{platform.machine()}): run `pip install .` in the checkout of bt_acme '
    'with such a Python. bt_acme.core works without them.'
  )
