"""Tests dm-acme with current JAX and rlax with TensorFlow in new processes."""

import ctypes
import sys

import pytest

from bt_acme import compat
from tests import python

pytest.importorskip('acme', reason='the full stack is for Python 3.10')

_AGENTS = """
import acme.adders.reverb
import acme.agents.jax.d4pg
import acme.agents.jax.dqn
import acme.agents.jax.r2d2
import acme.agents.jax.sac
import acme.agents.jax.td3
import acme.jax.layouts.distributed_layout
"""

_RLAX_DOES_NOT_LOAD_TENSORFLOW = """
import bt_acme, rlax, sys
assert 'tensorflow_probability.substrates.jax' in sys.modules
assert 'tensorflow' not in sys.modules
"""

_RESTORED_NAMES_WORK = """
import acme.jax.utils, jax, jax.numpy as jnp, numpy as np
from acme.adders.reverb import utils as adder_utils
state = jax.pmap(lambda x: {'a': x})(jnp.ones((1, 2)))
first = acme.jax.utils.get_from_first_device(state)
assert type(first['a']) is np.ndarray and first['a'].shape == (2,)
assert type(acme.jax.utils.fetch_devicearray(jnp.ones(2))) is np.ndarray
zeros = adder_utils.zeros_like(jnp.ones(2))
assert isinstance(zeros, jax.Array) and not zeros.any()
doubled = jax.tree_multimap(lambda x, y: x + y, {'a': 1}, {'a': 2})
assert doubled == jax.tree_map(lambda x: 3 * x, {'a': 1}) == {'a': 3}
leaves, structure = jax.tree_flatten({'a': 1, 'b': 2})
assert leaves == jax.tree_leaves({'a': 1, 'b': 2}) == [1, 2]
assert structure == jax.tree_structure({'a': 0, 'b': 0})
assert jax.tree_unflatten(structure, leaves) == {'a': 1, 'b': 2}
"""

# The server of Reverb prints lines.
_TENSORFLOW_AND_REVERB_WORK = """
print('Nothing else.', file=sys.stderr)
import reverb, tensorflow
assert tensorflow.constant(2).numpy() == 2
assert reverb.Server([reverb.Table.queue('a', 1)]).port > 0
"""

# TensorFlow 2.8 fails only if it is imported first.
_TENSORFLOW_STAYS_THE_SAME_MODULE = f"""
import tensorflow as first, reverb, launchpad, sys
import bt_acme, rlax{_AGENTS}
import tensorflow
assert sys.modules['tensorflow'] is tensorflow is first
assert tensorflow.constant(2).numpy() == 2
"""

# No module of dm-acme is imported between bt_acme and the use of the name.
_PARTS_THAT_READ_JAX_COME_FIRST = f"""
import acme
from acme.adders.reverb import utils
import bt_acme
import jax.numpy as jnp
assert not utils.zeros_like(jnp.ones(2)).any()
{_AGENTS}
"""


def _run(program):
  return python.run('-c', program)


@pytest.mark.parametrize(
  'program',
  [
    _RLAX_DOES_NOT_LOAD_TENSORFLOW
    + _AGENTS
    + _RESTORED_NAMES_WORK
    + _TENSORFLOW_AND_REVERB_WORK,
    _TENSORFLOW_STAYS_THE_SAME_MODULE,
    _PARTS_THAT_READ_JAX_COME_FIRST,
  ],
  ids=['bt_acme first', 'tensorflow first', 'acme first'],
)
def test_importing_dm_acme_prints_nothing(program):
  result = _run(program)
  assert result.returncode == 0, result.stderr
  assert result.stdout == ''
  assert result.stderr.partition('Nothing else.')[0] == ''


@pytest.mark.parametrize('name', ['acme.agents.jax.r2d2', 'acme.jax.utils'])
def test_a_failed_import_of_dm_acme_can_be_repeated(name):
  # If the first import works, the corresponding part of `compat.py` can go.
  result = _run(f"""
try:
  import {name}
except (AttributeError, ImportError):
  import bt_acme
  import {name}
else:
  raise AssertionError('{name} does not need the hook')
""")
  assert result.returncode == 0, result.stderr


@pytest.fixture
def libraries(monkeypatch):
  """Sets the paths from which a shared library can be loaded."""

  def set_libraries(paths):
    loaded = []

    def load(path):
      if path not in paths:
        raise OSError(f'{path}: cannot open shared object file')
      loaded.append(path)

    monkeypatch.setattr(ctypes, 'CDLL', load)
    return loaded

  monkeypatch.setattr(sys, 'base_prefix', '/python')
  return set_libraries


_LIBPYTHON = f'libpython3.{sys.version_info.minor}.so.1.0'


@pytest.mark.parametrize('path', [_LIBPYTHON, f'/python/lib/{_LIBPYTHON}'])
def test_libpython_is_loaded_from_system_or_interpreter(libraries, path):
  loaded = libraries([path])
  compat.load_libpython()
  assert loaded == [path]


def test_the_error_for_missing_libpython_names_the_fix(libraries):
  libraries([])
  with pytest.raises(ImportError, match='apt-get install libpython3') as error:
    compat.load_libpython()
  assert '\n' not in str(error.value)
