"""Acme builders: R2D2, NGU, and behavior transfer for R2D2 or other agents."""

from bt_acme import installation

installation.require_full_stack()

# These imports need the full stack, so they follow the check.
from bt_acme.agents.bt import BTBuilder  # noqa: E402
from bt_acme.agents.builders import NGUBuilder, R2D2Builder  # noqa: E402
from bt_acme.agents.external.images import scale_images  # noqa: E402
from bt_acme.assembly import EnvironmentSpec, spec_of  # noqa: E402

__all__ = (
  'BTBuilder',
  'EnvironmentSpec',
  'NGUBuilder',
  'R2D2Builder',
  'scale_images',
  'spec_of',
)
