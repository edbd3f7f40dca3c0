"""Which of the two environments this process runs in."""

import importlib.util
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
  python = '.'.join(map(str, sys.version_info[:2]))
  where = (
    'run `pip install .` in the checkout of bt_acme'
    if python == '3.10'
    else f'they exist for Python 3.10 only and this is Python {python}: make '
    'an environment of Python 3.10 and run `pip install .` in it'
  )
  raise ImportError(
    f'bt_acme.agents needs {", ".join(missing)}: {where} '
    '(bt_acme.core works without them).'
  )
