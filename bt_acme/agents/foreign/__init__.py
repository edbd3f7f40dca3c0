"""Deprecated alias of `agents.external`; the next release removes it."""

import sys
import warnings

from bt_acme.agents.external import (
  actor,
  builder,
  checks,
  images,
  outer_core,
)

warnings.warn(
  'bt_acme.agents.foreign is deprecated. Import bt_acme.agents.external.',
  DeprecationWarning,
  stacklevel=2,
)
for _module in (actor, builder, checks, images, outer_core):
  _name = _module.__name__.rpartition('.')[2]
  sys.modules[f'{__name__}.{_name}'] = _module

__all__ = (
  'actor',
  'builder',
  'checks',
  'images',
  'outer_core',
)
