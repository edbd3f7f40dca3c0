"""Keeps what JAX compiles, for the next run and the next process.

JAX has such a cache and leaves it off. bt_acme turns it on where a run begins,
in a folder of the user, unless the user has chosen a folder
(`JAX_COMPILATION_CACHE_DIR`) or wants none
(`JAX_ENABLE_COMPILATION_CACHE=false`).
"""

import hashlib
import os
import pathlib
from typing import Any, Dict

import jax

_FOLDER = 'JAX_COMPILATION_CACHE_DIR'
# Shorter compilations cost as much as the file that would save them.
_SECONDS = 'JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS'
_BYTES = 'JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES'
_DEFAULTS = {_SECONDS: '0.1', _BYTES: '-1'}


def folder() -> pathlib.Path:
  """Returns where the functions for this kind of CPU are kept.

  What was compiled for one CPU may not run on another, and both may have the
  same home folder.
  """
  root = os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache')
  return pathlib.Path(root) / 'bt_acme' / 'compiled' / _cpu()


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
  """Returns the environment variables that turn it on in a new process."""
  chosen = {_FOLDER: str(folder()), **_DEFAULTS}
  return {name: os.environ.get(name, value) for name, value in chosen.items()}


def enable() -> None:
  """Turns it on in this process; what has been compiled before is not kept."""
  settings: Any = jax.config
  if settings.jax_compilation_cache_dir is not None:
    return
  for name, value in {_FOLDER: str(folder()), **_DEFAULTS}.items():
    if name not in os.environ:
      kind = {_FOLDER: str, _SECONDS: float, _BYTES: int}[name]
      settings.update(name.lower(), kind(value))
