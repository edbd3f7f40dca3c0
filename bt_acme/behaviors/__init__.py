"""Ways to get a behavior (π_p) to transfer."""

from bt_acme.acting.behavior import (
  ActionRepeat,
  Behavior,
  FromCallable,
  Host,
  Uniform,
)
from bt_acme.behaviors.exported import Exported, export

__all__ = (
  'ActionRepeat',
  'Behavior',
  'Exported',
  'FromCallable',
  'Host',
  'Uniform',
  'export',
)
