"""Caches functions compiled by JAX across processes and runs.

JAX disables its compilation cache by default. bt_acme enables the cache at the
start of a run, in a directory below the user's cache directory. Set
`JAX_COMPILATION_CACHE_DIR` to use another directory, or
`JAX_ENABLE_COMPILATION_CACHE=false` to disable the cache.
"""

import hashlib
import os
import pathlib
import warnings
from typing import Any, Dict

import jax

_FOLDER = 'JAX_COMPILATION_CACHE_DIR'
# Reading the cache takes about as long as shorter compilations.
_SECONDS = 'JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS'
_BYTES = 'JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES'
_DEFAULTS = {_SECONDS: '0.1', _BYTES: '-1'}
# A process may read an entry while another writes it, and then compiles the
# function itself. JAX warns about this, but no user can change it.
_HARMLESS = 'Error reading persistent compilation cache entry'
_WARNINGS = 'PYTHONWARNINGS'


def root() -> pathlib.Path:
  """Returns the package's directory in the user's cache."""
  cache = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')
  return pathlib.Path(cache) / 'bt_acme'


def folder() -> pathlib.Path:
  """Returns the cache directory for this kind of CPU.

  Functions compiled for one CPU may not run on another, and machines with
  different CPUs may share a home directory.
  """
  return root() / 'compiled' / _cpu()


def _cpu() -> str:
  """Returns a name for the instruction set of this CPU."""
  lines = []
  try:
    with open('/proc/cpuinfo') as file:
      lines = [line for line in file if line.startswith(('flags', 'Features'))]
  except OSError:  # Only Linux has this file.
    pass
  return hashlib.sha256(''.join(lines[:1]).encode()).hexdigest()[:8]


def variables() -> Dict[str, str]:
  """Returns environment variables that enable the cache in new processes."""
  chosen = {_FOLDER: str(folder()), **_DEFAULTS}
  own = os.environ.get(_WARNINGS)  # The last filter that matches decides.
  return {
    **{name: os.environ.get(name, value) for name, value in chosen.items()},
    _WARNINGS: f'ignore:{_HARMLESS}:UserWarning' + (f',{own}' if own else ''),
  }


def enable() -> None:
  """Enables the cache in this process, for future compilations."""
  warnings.filterwarnings('ignore', _HARMLESS, UserWarning)
  settings: Any = jax.config
  if settings.jax_compilation_cache_dir is not None:
    return
  for name, value in {_FOLDER: str(folder()), **_DEFAULTS}.items():
    if name not in os.environ:
      kind = {_FOLDER: str, _SECONDS: float, _BYTES: int}[name]
      settings.update(name.lower(), kind(value))
