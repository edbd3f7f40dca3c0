"""The versions of this package, recorded in saved runs, and of others."""

import importlib.metadata

__version__ = '0.1.0'
# The packages whose versions belong in a saved run or a bug report.
PACKAGES = (
  *('jax', 'jaxlib', 'dm-haiku', 'optax', 'rlax', 'chex', 'numpy', 'dm-env'),
  *('ale-py', 'gymnasium', 'minigrid', 'dm-acme', 'dm-reverb', 'dm-launchpad'),
  'matplotlib',
)


def installed(package: str) -> str | None:
  """Returns the version of a package; None if it is not installed."""
  try:
    return importlib.metadata.version(package)
  except importlib.metadata.PackageNotFoundError:
    return None
