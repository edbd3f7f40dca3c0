"""Lets dm-acme 0.4.0 and rlax run on current JAX alongside TensorFlow.

`import bt_acme` installs one import hook, which costs nothing by itself. It
acts when a module that needs help is first imported, and it does so in every
process, because a worker that unpickles its function imports `bt_acme` first.

- dm-acme reads names that JAX has since dropped. The hook puts them back.
- dm-acme imports gym, which prints a notice in every process. The hook silences
  it.
- Reverb and Courier are linked against libpython, which an interpreter that has
  it built in does not load. The hook loads it.
- rlax imports TensorFlow Probability, of which it uses the JAX half alone.
  That half loads TensorFlow where it is installed (3 s and 250 MB in every
  process), and refuses TensorFlow 2.8 where it is loaded already. The hook
  imports it while TensorFlow is hidden, as on a machine without TensorFlow.
- TensorFlow Probability 0.25, the last release and the one on Colab, reads a
  name that JAX 0.7 has dropped. The hook puts it back.

Acme itself may be imported first: `import acme`, `acme.specs`, `acme.wrappers`
and `acme.adders` need no help to load. `acme.agents.jax`, `acme.jax.networks`,
`acme.jax.losses` and `acme.jax.utils` do need it, and fail before any line of
bt_acme runs: they read `jax.xla` and the JAX half while they are imported. They
load once bt_acme is imported, even after they failed.
"""

import contextlib
import ctypes
import importlib
import importlib.abc
import importlib.util
import os
import sys
import types
import warnings
from typing import Any, Iterator

_JAX_HALF = 'tensorflow_probability.substrates.jax'
_IMPORTS_JAX_HALF = ('acme.jax.losses', 'acme.jax.networks', 'distrax', 'rlax')
_LINKED_AGAINST_LIBPYTHON = ('courier', 'reverb')


def restore_jax_names() -> None:
  """Puts back the names of JAX that dm-acme 0.4.0 reads."""
  import jax
  import jax.numpy as jnp

  # mypy would look for the names in JAX if they were assigned plainly.
  jax_names = vars(jax)
  for name in ('map', 'leaves', 'flatten', 'unflatten', 'structure'):
    jax_names[f'tree_{name}'] = getattr(jax.tree_util, f'tree_{name}')
  jax_names['tree_multimap'] = jax.tree_util.tree_map
  jax_names['xla'] = types.SimpleNamespace(
    Device=jax.Device, DeviceArray=jax.Array
  )
  jax_names['pxla'] = types.SimpleNamespace(ShardedDeviceArray=jax.Array)
  vars(jnp)['DeviceArray'] = jax.Array


def restore_names_for_tensorflow_probability() -> None:
  """Puts back the name of JAX that TensorFlow Probability 0.25 reads."""
  import jax
  import jax.interpreters.xla

  # A later JAX warns, and may drop it; with it come releases that do not ask.
  with warnings.catch_warnings():
    warnings.simplefilter('ignore', DeprecationWarning)
    mappings = getattr(jax.core, 'pytype_aval_mappings', None)
  if mappings is not None:
    vars(jax.interpreters.xla).setdefault('pytype_aval_mappings', mappings)


def load_libpython() -> None:
  """Loads this interpreter's libpython, if need be from its own folder.

  Raises:
    ImportError: if there is no such library.
  """
  version = f'{sys.version_info.major}.{sys.version_info.minor}'
  name = f'libpython{version}.so.1.0'
  own_folder = os.path.join(sys.base_prefix, 'lib')
  for path in (name, os.path.join(own_folder, name)):
    with contextlib.suppress(OSError):
      ctypes.CDLL(path)
      return
  raise ImportError(
    f'Reverb and Launchpad need {name}, which is neither on the system nor in '
    f'{own_folder}: install it (Debian, Ubuntu: apt-get install '
    f'libpython{version}) or take a Python {version} that was built with '
    '--enable-shared.'
  )


@contextlib.contextmanager
def _tensorflow_hidden() -> Iterator[None]:
  """Makes `import tensorflow` fail in the block, even if it is loaded."""
  modules: dict[str, Any] = sys.modules
  loaded = modules.pop('tensorflow', None)
  modules['tensorflow'] = None  # Python then refuses to import it.
  try:
    yield
  finally:
    del modules['tensorflow']
    if loaded is not None:
      modules['tensorflow'] = loaded


class _Hook(importlib.abc.MetaPathFinder):
  """Finds no module itself, but prepares the import of some."""

  _restored = False

  def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
    del path, target
    if fullname.startswith('acme.') and not self._restored:
      self._restored = True
      restore_jax_names()
    if fullname == 'gym':
      importlib.import_module('gym_notices.notices').notices.clear()
    if fullname in _LINKED_AGAINST_LIBPYTHON:
      load_libpython()
    if fullname in _IMPORTS_JAX_HALF and _JAX_HALF not in sys.modules:
      restore_names_for_tensorflow_probability()
      with _tensorflow_hidden():
        importlib.import_module(_JAX_HALF)


def _acme_reads_jax() -> bool:
  """Returns whether parts of dm-acme that read JAX may be loaded already."""
  return 'jax' in sys.modules and any(
    name.startswith('acme.') for name in sys.modules
  )


def install() -> None:
  """Installs the hook once."""
  if any(isinstance(finder, _Hook) for finder in sys.meta_path):
    return
  sys.meta_path.insert(0, _Hook())
  if _acme_reads_jax():  # The hook may never see another import of dm-acme.
    restore_jax_names()
