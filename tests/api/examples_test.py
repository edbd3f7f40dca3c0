"""Runs the examples in the docstrings of the public names.

They run as written, except that networks are small. The examples of methods
continue the example of their class. An example that starts with the comment
`# Takes about ...` is too long to run here; the tests of the documentation run
the same calls with small budgets.
"""

import importlib
import inspect
import re
import textwrap

import pytest

import bt_acme
from tests import small_examples

pytestmark = pytest.mark.usefixtures('shared_functions')

_MODULES = ('', '.agents', '.behaviors', '.config', '.environments')
_MODULES = (*_MODULES, '.evaluation', '.plots', '.video')
_DATA = ('__version__', 'AGENTS', 'FIRST_ENVIRONMENT')  # Without docstrings.
_EXAMPLE = re.compile(r'^Example:\n  ```python\n(.*?)\n  ```', re.M | re.S)


def _examples(documented):
  """Returns the code of an object's example and of those of its methods."""
  members = vars(documented).values() if inspect.isclass(documented) else ()
  docstrings = [
    inspect.getdoc(x) for x in (documented, *members) if callable(x)
  ]
  found = [_EXAMPLE.search(docstring or '') for docstring in docstrings]
  return [textwrap.dedent(match[1]) for match in found if match]


def _public(module):
  if module in ('.plots', '.video'):
    public = getattr(bt_acme, module[1:])
    return [
      each
      for name, each in vars(public).items()
      if getattr(each, '__module__', '') == public.__name__ and name[0] != '_'
    ]
  public = importlib.import_module(f'bt_acme{module}')
  names = [name for name in public.__all__ if name not in _DATA]
  found = [getattr(public, name) for name in names]
  return [each for each in found if not inspect.ismodule(each)]


@pytest.mark.parametrize('module', _MODULES)
def test_examples_run(module, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  small_examples.make_runs_small(monkeypatch)
  for documented in _public(module):
    examples = _examples(documented)
    assert examples, f'{documented} has no example.'
    namespace = {'bt_acme': bt_acme}
    for example in examples:
      program = compile(example, documented.__name__, 'exec')
      if not example.startswith('# Takes about '):
        exec(program, namespace)
