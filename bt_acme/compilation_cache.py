"""Caches functions compiled by JAX across processes and runs.

JAX disables its compilation cache by default. bt_acme enables the cache at the
start of each process of a run, in a directory below the user's cache directory.
Set `JAX_COMPILATION_CACHE_DIR` to use another directory, or
`JAX_ENABLE_COMPILATION_CACHE=false` to disable the cache.
"""

import hashlib
import os
import pathlib
import warnings
from typing import Any

import jax

# A process may read an entry while another writes it, and then compiles the
# function itself. JAX warns about this, but no user can change it.
_HARMLESS = 'Error reading persistent compilation cache entry'


def root() -> pathlib.Path:
  """Returns the package's directory in the user's cache."""
  cache = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')
  return pathlib.Path(cache) / 'bt_acme'


def folder() -> pathlib.Path:
  """Returns the cache directory for this kind of CPU.

  Functions compiled for one CPU may not run on another, and machines with
  different CPUs may share a home directory.
  """
  lines = []
  try:
    with open('/proc/cpuinfo') as file:
      lines = [line for line in file if line.startswith(('flags', 'Features'))]
  except OSError:  # Only Linux has this file.
    pass
  instruction_set = hashlib.sha256(''.join(lines[:1]).encode()).hexdigest()
  return root() / 'compiled' / instruction_set[:8]


def enable() -> None:
  """Enables the cache in this process, for future compilations."""
  warnings.filterwarnings('ignore', _HARMLESS, UserWarning)
  settings: Any = jax.config
  if settings.jax_compilation_cache_dir is not None:
    return
  defaults = {
    'jax_compilation_cache_dir': str(folder()),
    # Reading the cache takes about as long as shorter compilations.
    'jax_persistent_cache_min_compile_time_secs': 0.1,
    'jax_persistent_cache_min_entry_size_bytes': -1,
  }
  for name, value in defaults.items():
    if name.upper() not in os.environ:
      settings.update(name, value)
