"""Behaviors to transfer (π_p in the paper)."""

from bt_acme.acting.behavior import Behavior, Host
from bt_acme.behaviors import lookup
from bt_acme.behaviors.cards import Card
from bt_acme.behaviors.exported import Exported
from bt_acme.behaviors.exported_folder import export
from bt_acme.behaviors.from_callable import FromCallable
from bt_acme.behaviors.simple import ActionRepeat, Uniform

__all__ = (
  'ActionRepeat',
  'Behavior',
  'Card',
  'Exported',
  'FromCallable',
  'Host',
  'Uniform',
  'export',
)

# Not in `__all__`: `from bt_acme.behaviors import *` would shadow the builtin.
list = lookup.names
