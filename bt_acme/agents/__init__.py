"""Acme builders: R2D2, NGU, and Behavior Transfer around either of yours."""

from bt_acme import stack

stack.require_full_stack()

# Below the check, which must come first.
from bt_acme.agent import EnvironmentSpec, spec_of  # noqa: E402
from bt_acme.agents.bt import BTBuilder  # noqa: E402
from bt_acme.agents.images import scale_images  # noqa: E402
from bt_acme.agents.ngu import NGUBuilder  # noqa: E402
from bt_acme.agents.r2d2 import R2D2Builder  # noqa: E402

__all__ = (
  'BTBuilder',
  'EnvironmentSpec',
  'NGUBuilder',
  'R2D2Builder',
  'scale_images',
  'spec_of',
)
