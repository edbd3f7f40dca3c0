"""Ways to get a behavior (π_p) to transfer."""

from bt_acme.behaviors.base import ActionRepeat
from bt_acme.behaviors.base import Behavior
from bt_acme.behaviors.base import FromCallable
from bt_acme.behaviors.base import Host
from bt_acme.behaviors.base import Uniform
from bt_acme.behaviors.exported import Exported
from bt_acme.behaviors.exported import export

__all__ = (
  'ActionRepeat',
  'Behavior',
  'Exported',
  'FromCallable',
  'Host',
  'Uniform',
  'export',
)
