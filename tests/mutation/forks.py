"""Runs tests of a copied tree in forked processes with JAX preloaded.

Importing JAX, Acme and Reverb takes seconds, but most mutants are killed within
one second. Therefore, one process imports them, and its children run the tests.
This is safe because none of these imports initializes a device. Each child
imports `bt_acme` and the tests from the copy.
"""

import contextlib
import ctypes
import importlib
import json
import os
import pathlib
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from typing import Any, Callable, Iterator

_IMPORTED_ONCE = (
  *('jax', 'jax.numpy', 'haiku', 'optax', 'rlax', 'chex', 'acme.jax.utils'),
  *('reverb', 'launchpad', 'scipy.stats', 'cv2', 'gymnasium', 'minigrid'),
  *('ale_py', 'pytest'),
)
_END_WITH_PARENT = 1  # PR_SET_PDEATHSIG of Linux.
_MOST_MEMORY = 8 << 30  # Bytes. A mutant may request any amount.


def import_once() -> None:
  """Imports the packages that every child needs."""
  flags = os.environ.get('XLA_FLAGS', '')
  importlib.import_module('tests.conftest')  # JAX reads its settings once.
  # The children add the flags of the tests again. Duplicate flags would change
  # the keys of the cache of compiled functions.
  os.environ['XLA_FLAGS'] = flags
  importlib.import_module('bt_acme')  # Makes Acme compatible with this JAX.
  # JAX warns about forks because of its threads, but none has started here.
  warnings.filterwarnings('ignore', message=r'os\.fork\(\) was called')
  with warnings.catch_warnings():
    warnings.simplefilter('ignore')
    for name in _IMPORTED_ONCE:
      importlib.import_module(name)
  from jax._src import xla_bridge

  assert not xla_bridge._backends, (
    'A child process cannot use a device of its parent.'
  )


@contextlib.contextmanager
def copied_tree(tree: pathlib.Path) -> Iterator[pathlib.Path]:
  """Copies the files of a tree that Git lists; deletes the copy at the end.

  The environments are linked, because tests of Ray need theirs.
  """
  command = ['git', 'ls-files', '-z', '-co', '--exclude-standard']
  listed = subprocess.check_output(command, cwd=tree, text=True)
  with tempfile.TemporaryDirectory(prefix='mutants-') as folder:
    copy = pathlib.Path(folder, 'tree')
    for name in filter(None, listed.split('\0')):
      if (tree / name).is_file():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(tree / name, copy / name)
    for environment in tree.glob('.venv*'):
      (copy / environment.name).symlink_to(environment.resolve())
    yield copy


def call(
  function: Callable[[], Any], copy: pathlib.Path, seconds: float
) -> Any | None:
  """Calls a function in a child that imports from a copied tree.

  Args:
    function: a function whose result can be stored as JSON.
    copy: the working directory of the child.
    seconds: the time limit, after which the child and its processes are killed.

  Returns:
    The result of the function, `{'crash': ...}` if the child crashed, or None
    after the time limit.
  """
  result = copy.parent / 'result.json'
  result.unlink(missing_ok=True)
  child = os.fork()
  if not child:
    _be_the_child(function, copy, result)
  watch = os.pidfd_open(child)
  in_time = bool(select.select([watch], [], [], seconds)[0])
  os.close(watch)
  with contextlib.suppress(ProcessLookupError):
    os.killpg(child, signal.SIGKILL)
  _, status = os.waitpid(child, 0)
  if not in_time:
    return None
  if not result.exists():
    return {'crash': f'status {os.waitstatus_to_exitcode(status)}'}
  return json.loads(result.read_text())


def _be_the_child(function, copy: pathlib.Path, result: pathlib.Path) -> None:
  """Calls the function, stores its result, and exits."""
  try:
    os.setsid()
    ctypes.CDLL(None).prctl(_END_WITH_PARENT, signal.SIGKILL)
    _redirect_output(copy.parent / 'output.txt')
    resource.setrlimit(resource.RLIMIT_DATA, (_MOST_MEMORY, _MOST_MEMORY))
    _import_from(copy)
    value = json.dumps(function())
    partial = result.with_suffix('.partial')
    partial.write_text(value)
    partial.rename(result)
  except BaseException:
    traceback.print_exc()
  finally:
    os._exit(0)


def _redirect_output(path: pathlib.Path) -> None:
  source = os.open(os.devnull, os.O_RDONLY)
  target = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
  for descriptor, stream in ((source, 0), (target, 1), (target, 2)):
    os.dup2(descriptor, stream)


def _import_from(copy: pathlib.Path) -> None:
  """Unloads `bt_acme` and the tests, and loads them from the copy."""
  os.chdir(copy)
  os.environ['PYTHONPATH'] = str(copy)  # For processes that tests start.
  root = str(pathlib.Path(__file__).parents[2])
  sys.path[:] = [str(copy)] + [
    path for path in sys.path if path not in ('', root)
  ]
  for name in list(sys.modules):
    if name.split('.')[0] in ('bt_acme', 'tests'):
      del sys.modules[name]
  sys.meta_path[:] = [
    finder
    for finder in sys.meta_path
    if not type(finder).__module__.startswith('bt_acme')
  ]
  importlib.invalidate_caches()
