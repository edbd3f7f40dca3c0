"""Makes dm-acme 0.4.0 and rlax work with current JAX and TensorFlow.

`import bt_acme` installs an import hook, which by itself costs no time. The
hook acts when an incompatible module is first imported. A process that first
unpickles a function of `bt_acme`, or of a module that imports it, has the hook.

- dm-acme reads names that were removed from JAX. The hook restores them.
- dm-acme imports gym, which prints a notice in every process. The hook
  suppresses the notice.
- Reverb and Courier are linked against libpython, which is not loaded if the
  interpreter is statically linked. The hook loads libpython.
- rlax imports TensorFlow Probability, but uses only its JAX substrate. The
  substrate loads TensorFlow if it is installed (3 s and 250 MB in every
  process), and fails if TensorFlow 2.8 is already loaded. The hook imports the
  substrate while TensorFlow is hidden, as on a machine without TensorFlow.
- TensorFlow Probability 0.25, the last release and the version on Colab, reads
  a name that was removed from JAX 0.7. The hook restores it.

Some modules of Acme can be imported before bt_acme: `acme`, `acme.specs`,
`acme.wrappers` and `acme.adders`. Others fail without the hook, because they
read `jax.xla` or the JAX substrate during their import: `acme.agents.jax`,
`acme.jax.networks`, `acme.jax.losses` and `acme.jax.utils`. After a failure
they can be imported once bt_acme is imported.
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
from collections.abc import Iterator
from typing import Any

_JAX_SUBSTRATE = 'tensorflow_probability.substrates.jax'
_IMPORTS_SUBSTRATE = ('acme.jax.losses', 'acme.jax.networks', 'distrax', 'rlax')
_LINKED_AGAINST_LIBPYTHON = ('courier', 'reverb')


def restore_jax_names() -> None:
  """Restores the names of JAX that dm-acme 0.4.0 reads."""
  import jax
  import jax.numpy as jnp

  # With plain assignments, mypy would report unknown attributes of JAX.
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
  """Restores the name of JAX that TensorFlow Probability 0.25 reads."""
  import jax
  import jax.interpreters.xla

  # Later versions of JAX deprecate the name and may remove it. Releases of
  # TensorFlow Probability for these versions do not read it.
  with warnings.catch_warnings():
    warnings.simplefilter('ignore', DeprecationWarning)
    mappings = getattr(jax.core, 'pytype_aval_mappings', None)
  if mappings is not None:
    vars(jax.interpreters.xla).setdefault('pytype_aval_mappings', mappings)


def load_libpython() -> None:
  """Loads libpython, from the system or from the interpreter's directory.

  Raises:
    ImportError: if the library is not found.
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
    f'{own_folder}. Install it (Debian, Ubuntu: apt-get install '
    f'libpython{version}) or use a Python {version} that was built with '
    '--enable-shared.'
  )


@contextlib.contextmanager
def _tensorflow_hidden() -> Iterator[None]:
  """Makes `import tensorflow` fail in the block, even if already loaded."""
  modules: dict[str, Any] = sys.modules
  loaded = modules.pop('tensorflow', None)
  modules['tensorflow'] = None  # Importing it then fails.
  try:
    yield
  finally:
    del modules['tensorflow']
    if loaded is not None:
      modules['tensorflow'] = loaded


class _Hook(importlib.abc.MetaPathFinder):
  """Prepares the import of some modules, but finds none itself."""

  def find_spec(self, fullname: str, path: Any, target: Any = None) -> None:
    """Prepares the import of a module; always returns None."""
    del path, target
    if fullname.startswith('acme.'):
      restore_jax_names()
    if fullname == 'gym':
      importlib.import_module('gym_notices.notices').notices.clear()
    if fullname in _LINKED_AGAINST_LIBPYTHON:
      load_libpython()
    if fullname in _IMPORTS_SUBSTRATE and _JAX_SUBSTRATE not in sys.modules:
      restore_names_for_tensorflow_probability()
      with _tensorflow_hidden():
        importlib.import_module(_JAX_SUBSTRATE)


def install() -> None:
  """Installs the hook once."""
  if any(isinstance(finder, _Hook) for finder in sys.meta_path):
    return
  sys.meta_path.insert(0, _Hook())
  if 'jax' in sys.modules and 'acme.specs' in sys.modules:
    restore_jax_names()  # No later import of a part of Acme may trigger it.
