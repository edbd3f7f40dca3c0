"""Behavior Transfer for value-based agents, with JAX, Haiku and Acme.

`pretrain`, `transfer`, `train` and `evaluate` run in the current process and do
not need Acme. `help('bt_acme.api')` shows an example.
"""

import importlib
from typing import Any

from bt_acme import compat
from bt_acme.version import __version__

compat.install()

# The module that defines each name. Modules are imported on first use, so that
# a run without plots does not wait for matplotlib.
_API = {
  **dict.fromkeys(('pretrain', 'train', 'transfer'), 'bt_acme.api.training'),
  **dict.fromkeys(('evaluate', 'Evaluation'), 'bt_acme.api.evaluating'),
  **dict.fromkeys(('Run', 'load_run'), 'bt_acme.api.runs'),
  'load_behavior': 'bt_acme.api.loading',
  'Bank': 'bt_acme.api.banks',
  'continual': 'bt_acme.api.continual',
  'register_environment': 'bt_acme.environments',
  'describe': 'bt_acme.api.card_text',
  'show_versions': 'bt_acme.api.versions',
}
# Public names that differ from the name in their module.
_NAMES_THERE = {'register_environment': 'register'}
_MODULES = {
  'behaviors': 'bt_acme.behaviors',
  'plots': 'bt_acme.api.plots',
  'video': 'bt_acme.api.video',
}

__all__ = ('__version__', *_API, *_MODULES)


def __getattr__(name: str) -> Any:
  if name in _MODULES:
    return importlib.import_module(_MODULES[name])
  if name in _API:
    module = importlib.import_module(_API[name])
    return getattr(module, _NAMES_THERE.get(name, name))
  raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


def __dir__() -> list[str]:
  return sorted({*globals(), *__all__})
