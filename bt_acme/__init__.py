"""Behavior Transfer for value-based agents, on JAX, Haiku and Acme.

`pretrain`, `transfer`, `train` and `evaluate` run in this process and need no
Acme; `help(bt_acme.api)` shows an example. They are loaded when they are first
used.
"""

import importlib
from typing import Any, List

from bt_acme import compat
from bt_acme.version import __version__

compat.install()

# What comes from `bt_acme.api`.
_API = (
  *('pretrain', 'train', 'transfer', 'evaluate', 'Run', 'Evaluation'),
  *('load_run', 'load_behavior', 'register_environment', 'show_versions'),
  *('plots', 'video'),
)

__all__ = ('__version__', *_API)


def __getattr__(name: str) -> Any:
  if name not in _API:
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
  return getattr(importlib.import_module('bt_acme.api'), name)


def __dir__() -> List[str]:
  return sorted({*globals(), *_API})
