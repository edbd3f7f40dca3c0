"""Tests that compiled functions are cached unless the user disables it."""

import os

from bt_acme import compilation_cache
from tests import python

_PROGRAM = """
import jax, jax.numpy as jnp
jax.jit(lambda x: x + 1)(jnp.ones(3))  # Compiled before.
from bt_acme import compilation_cache
compilation_cache.enable()
jax.config.update('jax_persistent_cache_min_compile_time_secs', 0)
jax.jit(lambda x: jnp.sin(x) @ x)(jnp.ones((5, 5)))
"""


def _files(tmp_path, **variables):
  environment = {k: v for k, v in os.environ.items() if 'CACHE' not in k}
  environment['XDG_CACHE_HOME'] = str(tmp_path / 'cache')
  done = python.check('-c', _PROGRAM, env={**environment, **variables})
  assert not done.stderr
  return sorted(
    str(path.parent.relative_to(tmp_path)) for path in tmp_path.rglob('*-cache')
  )


def test_no_directory_and_that_of_the_user(tmp_path):
  assert not _files(tmp_path, JAX_ENABLE_COMPILATION_CACHE='false')
  own = {'JAX_COMPILATION_CACHE_DIR': str(tmp_path / 'own')}
  assert set(_files(tmp_path, **own)) == {'own'}


def _damage(tmp_path):
  for entry in tmp_path.rglob('*-cache'):
    entry.write_bytes(entry.read_bytes()[:-100])


def test_a_damaged_entry_is_compiled_again_without_a_warning(tmp_path):
  (default, *_) = _files(tmp_path)
  name = compilation_cache.folder().name
  assert default == f'cache/bt_acme/compiled/{name}'
  _damage(tmp_path)
  _files(tmp_path)  # Asserts that nothing is printed.
  _damage(tmp_path)
  program = _PROGRAM.replace('compilation_cache.enable()', '')
  folder = str(next(tmp_path.rglob('*-cache')).parent)
  environment = {**os.environ, 'JAX_COMPILATION_CACHE_DIR': folder}
  done = python.check('-c', program, env=environment)
  assert 'UserWarning' in done.stderr
