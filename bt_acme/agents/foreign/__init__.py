"""Deprecated alias of `agents.external`; the next release removes it."""

import sys
import warnings

from bt_acme.agents.external import actor, builder, checks, images, outer_core

warnings.warn(
  'bt_acme.agents.foreign is deprecated. Import bt_acme.agents.external.',
  DeprecationWarning,
  stacklevel=2,
)
__all__ = ('actor', 'builder', 'checks', 'images', 'outer_core')
for _name in __all__:
  sys.modules[f'{__name__}.{_name}'] = globals()[_name]
