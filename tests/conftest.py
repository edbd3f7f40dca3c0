"""Settings that hold for every test, and for the processes a test starts."""

import importlib.util
import os
import pathlib

import pytest

# These are set before JAX is first imported. Tests never take an accelerator.
os.environ['JAX_PLATFORMS'] = 'cpu'
# Compiling takes most of the tests' time. The core's tests also run with
# optimization, in the environment that has the core only.
if importlib.util.find_spec('reverb') is not None:
  os.environ['XLA_FLAGS'] = ' '.join(
    [os.environ.get('XLA_FLAGS', ''), '--xla_backend_optimization_level=0']
  ).strip()
# Compiled functions are kept for the next test, process and day. A first run
# saves a seventh of its CPU time, because tests compile many functions again; a
# later run saves a third. Short compilations are left out, because a file
# each costs as much.
_CACHE = pathlib.Path(__file__).parents[1] / '.pytest_cache' / 'jax'
os.environ.setdefault('JAX_COMPILATION_CACHE_DIR', str(_CACHE))
os.environ.setdefault('JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS', '0.1')
os.environ.setdefault('JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES', '-1')


# These start programs and mostly wait for them. They come first, so that a
# worker is not left alone with the longest of them at the end.
_FIRST = ('launch', 'runtime', 'notebooks_test.py')


def pytest_collection_modifyitems(items):
  """Puts the tests that start programs first; the others keep their order."""
  root = pathlib.Path(__file__).parent
  items.sort(
    key=lambda item: item.path.relative_to(root).parts[0] not in _FIRST
  )


@pytest.fixture(name='shared_functions', scope='module')
def share_compiled_functions():
  """Compiles the functions of an agent once for all tests of a module.

  Holding them longer would keep memory for what no later test uses.
  """
  # JAX reads the settings above when it is imported.
  from tests import sharing

  with pytest.MonkeyPatch.context() as monkeypatch:
    sharing.share_compiled_functions(monkeypatch)
    yield
