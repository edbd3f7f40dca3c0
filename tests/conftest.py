"""Settings for every test and for the processes that tests start."""

import ctypes
import faulthandler
import gc
import importlib.util
import os
import pathlib
import signal
import sys

import psutil
import pytest

# These variables are set before JAX is first imported. Tests never use an
# accelerator.
os.environ['JAX_PLATFORMS'] = 'cpu'
# Compilation takes most of the tests' time. Splitting the small functions of
# tests over threads takes a tenth more. The tests of the core also run with
# optimization, in the environment that contains only the core.
_FLAGS = [os.environ.get('XLA_FLAGS', '')]
_FLAGS.append('--xla_cpu_parallel_codegen_split_count=1')
if importlib.util.find_spec('reverb') is not None:
  _FLAGS.append('--xla_backend_optimization_level=0')
os.environ['XLA_FLAGS'] = ' '.join(_FLAGS).strip()
# Compiled functions are cached on disk across tests, processes and runs. The
# first run saves a seventh of its CPU time, because tests recompile many
# functions; later runs save a third. Short compilations are not cached, because
# writing a file takes as long.
_CACHE = pathlib.Path(__file__).parents[1] / '.pytest_cache' / 'jax'
os.environ.setdefault('JAX_COMPILATION_CACHE_DIR', str(_CACHE))
os.environ.setdefault('JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS', '0.1')
os.environ.setdefault('JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES', '-1')

# JAX creates many objects while it traces a function, so with the default
# thresholds, garbage collection takes a tenth of the tests' time.
gc.set_threshold(20_000, 10, 10)

# These tests take longest, and most of them wait for programs. They run first,
# so that none of them occupies a single worker at the end.
_FIRST = 'launch runtime simulation notebooks_test.py readme_test.py'.split()


def pytest_collection_modifyitems(items):
  """Moves the longest tests to the front; the others keep their order."""
  root = pathlib.Path(__file__).parent
  items.sort(
    key=lambda item: item.path.relative_to(root).parts[0] not in _FIRST
  )


def _limit_time(item):
  """Fails a phase of a test that takes too long, and prints all stacks.

  The limit is a third of `faulthandler_timeout`. After all of it, pytest ends a
  process that has not returned to Python.
  """
  limit = float(item.config.getini('faulthandler_timeout')) / 3
  if not limit:
    return (yield)

  def fail(signum, frame):
    del signum, frame
    faulthandler.dump_traceback(sys.__stderr__)
    pytest.fail(f'{item.nodeid} took more than {limit:.0f} s')

  previous = signal.signal(signal.SIGALRM, fail)
  signal.setitimer(signal.ITIMER_REAL, limit)
  try:
    return (yield)
  finally:
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, previous)


pytest_runtest_setup = pytest.hookimpl(wrapper=True)(_limit_time)
pytest_runtest_call = pytest.hookimpl(wrapper=True)(_limit_time)
pytest_runtest_teardown = pytest.hookimpl(wrapper=True)(_limit_time)


@pytest.fixture(autouse=True, scope='session')
def restore_signals():
  """Restores the signals that `nohup` and `&` ignore, for programs of tests.

  Programs inherit ignored signals from the process that starts them, but not
  signals with a handler. With this handler, the tests still outlive their
  terminal.
  """
  handlers = {
    signal.SIGHUP: lambda signum, frame: None,
    signal.SIGINT: signal.default_int_handler,
  }
  for signum, handler in handlers.items():
    if signal.getsignal(signum) == signal.SIG_IGN:
      signal.signal(signum, handler)


_MEMORY_STEP = 400_000_000  # Bytes.
_memory_bound = 3 * _MEMORY_STEP


@pytest.fixture(autouse=True)
def bound_memory():
  """Clears compiled functions after a test if this process is too large.

  JAX keeps all compiled functions, but later modules do not use them.
  """
  global _memory_bound
  yield
  process = psutil.Process()
  if 'jax' not in sys.modules or process.memory_info().rss < _memory_bound:
    return
  sys.modules['jax'].clear_caches()
  gc.collect()
  # With glibc, this returns free memory to the system.
  getattr(ctypes.CDLL(None), 'malloc_trim', lambda _: None)(0)
  # The remaining memory is not a cache, so the bound increases.
  _memory_bound = max(_memory_bound, process.memory_info().rss + _MEMORY_STEP)


@pytest.fixture(name='exported', scope='session')
def export_behavior(tmp_path_factory):
  """Exports a small random NGU policy; returns its directory."""
  from tests.agents import fakes

  folder = tmp_path_factory.mktemp('behavior') / 'b'
  fakes.export_behavior(folder)
  return str(folder)


@pytest.fixture(name='shared_functions', scope='module')
def share_compiled_functions():
  """Compiles the functions of an agent once for the files that use this."""
  # JAX reads the settings above when it is imported.
  from tests import sharing

  with pytest.MonkeyPatch.context() as monkeypatch:
    sharing.share_compiled_functions(monkeypatch)
    yield
