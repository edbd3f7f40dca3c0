"""Which of the two environments this process runs in."""

import importlib.util
import platform
import sys

# The modules of the full stack, and the package that brings each.
_PACKAGES = {
  'acme': 'dm-acme',
  'launchpad': 'dm-launchpad',
  'reverb': 'dm-reverb',
  'tensorflow': 'tensorflow-cpu',
}


def require_full_stack() -> None:
  """Checks that Acme, Launchpad and Reverb are there, before they are imported.

  Raises:
    ImportError: where they are not; says which Python has them and how to
      install them.
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
