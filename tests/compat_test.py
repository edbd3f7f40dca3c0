"""Tests dm-acme with current JAX and rlax with TensorFlow in new processes."""

import ctypes
import sys

import pytest

from bt_acme import compat
from tests import python

_AGENTS = """
import acme.adders.reverb
import acme.agents.jax.d4pg
import acme.agents.jax.dqn
import acme.agents.jax.r2d2
import acme.agents.jax.sac
import acme.agents.jax.td3
import acme.jax.layouts.distributed_layout
"""

# The server of Reverb prints lines.
_BT_ACME_COMES_FIRST = f"""
import bt_acme, rlax, sys
assert 'tensorflow_probability.substrates.jax' in sys.modules
assert 'tensorflow' not in sys.modules
{_AGENTS}
# The restored names work.
import acme.jax.utils, jax, jax.numpy as jnp, numpy as np
from acme.adders.reverb import utils as adder_utils
state = jax.pmap(lambda x: dict(a=x))(jnp.ones((1, 2)))
first = acme.jax.utils.get_from_first_device(state)
assert type(first['a']) is np.ndarray and first['a'].shape == (2,)
assert type(acme.jax.utils.fetch_devicearray(jnp.ones(2))) is np.ndarray
zeros = adder_utils.zeros_like(jnp.ones(2))
assert isinstance(zeros, jax.Array) and not zeros.any()
doubled = jax.tree_multimap(lambda x, y: x + y, dict(a=1), dict(a=2))
assert doubled == jax.tree_map(lambda x: 3 * x, dict(a=1)) == dict(a=3)
leaves, structure = jax.tree_flatten(dict(a=1, b=2))
assert leaves == jax.tree_leaves(dict(a=1, b=2)) == [1, 2]
assert structure == jax.tree_structure(dict(a=0, b=0))
assert jax.tree_unflatten(structure, leaves) == dict(a=1, b=2)
# TensorFlow and Reverb work.
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

# If a first import works, the corresponding part of `compat.py` can go.
# No module of dm-acme is imported between bt_acme and the use of the name.
_PARTS_THAT_READ_JAX_COME_FIRST = f"""
import acme, io, sys
from acme.adders.reverb import utils
sys.stderr = io.StringIO()  # gym prints a notice.
for name in ('acme.agents.jax.r2d2', 'acme.jax.utils'):
  try:
    __import__(name)
  except (AttributeError, ImportError):
    continue
  raise AssertionError(f'{{name}} does not need the hook')
sys.stderr = sys.__stderr__
import bt_acme
import jax.numpy as jnp
assert not utils.zeros_like(jnp.ones(2)).any()
{_AGENTS}
"""


@pytest.mark.parametrize(
  'program',
  [
    _BT_ACME_COMES_FIRST,
    _TENSORFLOW_STAYS_THE_SAME_MODULE,
    _PARTS_THAT_READ_JAX_COME_FIRST,
  ],
  ids=['bt_acme first', 'tensorflow first', 'acme first'],
)
def test_importing_dm_acme_prints_nothing(program):
  result = python.check('-c', program)
  assert result.stdout == ''
  assert result.stderr.partition('Nothing else.')[0] == ''


_LIBPYTHON = f'libpython3.{sys.version_info.minor}.so.1.0'


@pytest.mark.parametrize(
  'path', [_LIBPYTHON, f'/python/lib/{_LIBPYTHON}', None]
)
def test_libpython_is_loaded_from_system_or_interpreter(monkeypatch, path):
  loaded = []

  def load(library):
    if library != path:
      raise OSError(f'{library}: cannot open shared object file')
    loaded.append(library)

  monkeypatch.setattr(ctypes, 'CDLL', load)
  monkeypatch.setattr(sys, 'base_prefix', '/python')
  if path is not None:
    compat.load_libpython()
    assert loaded == [path]
    return
  with pytest.raises(ImportError, match='apt-get install libpython3') as error:
    compat.load_libpython()
  assert '\n' not in str(error.value)
