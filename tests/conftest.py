"""Settings that hold for every test, and for the processes a test starts."""

import ctypes
import gc
import importlib.util
import os
import pathlib
import signal
import sys

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


@pytest.fixture(autouse=True, scope='session')
def heed_signals():
  """Lets programs that tests start heed what `nohup` and `&` ignore.

  An ignored signal stays ignored in each program that a process starts. One
  that has a handler does not, and the tests still outlive their terminal.
  """
  handlers = {
    signal.SIGHUP: lambda signum, frame: None,
    signal.SIGINT: signal.default_int_handler,
  }
  for signum, handler in handlers.items():
    if signal.getsignal(signum) == signal.SIG_IGN:
      signal.signal(signum, handler)


class _MemoryBound:
  """Drops compiled functions when this process has grown too large.

  JAX keeps all that it has compiled, which no later module uses.
  """

  _STATM = pathlib.Path('/proc/self/statm')
  _STEP = 400_000_000  # Bytes.

  def __init__(self):
    self._bound = 2 * self._STEP

  def _resident_bytes(self):
    if not self._STATM.exists():
      return 0
    return int(self._STATM.read_text().split()[1]) * os.sysconf('SC_PAGE_SIZE')

  def enforce(self):
    """Clears JAX's caches above the bound."""
    if 'jax' not in sys.modules or self._resident_bytes() < self._bound:
      return
    sys.modules['jax'].clear_caches()
    gc.collect()
    # What is free goes back to the system, where libc is glibc.
    getattr(ctypes.CDLL(None), 'malloc_trim', lambda _: None)(0)
    # What remains is no cache: clear again only when more has come.
    self._bound = max(self._bound, self._resident_bytes() + self._STEP)


_MEMORY_BOUND = _MemoryBound()


@pytest.fixture(autouse=True)
def bound_memory():
  """Keeps each test process small."""
  yield
  _MEMORY_BOUND.enforce()


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
