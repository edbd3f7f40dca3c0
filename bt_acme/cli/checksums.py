"""Checksums of the parameters that a run was given."""

from typing import Any, Dict, Optional, Sequence

from bt_acme import behaviors
from bt_acme.behaviors import exported_folder
from bt_acme.cli import initial_weights
from bt_acme.runtime import workdir


def compute(
  transferred: Sequence[behaviors.Behavior] = (),
  weights: Optional[initial_weights.WeightsConfig] = None,
) -> Dict[str, Any]:
  """Returns the checksums that `workdir.claim` compares instead of directories.

  Args:
    transferred: the behaviors. A behavior that was not exported is identified
      by its name.
    weights: the initial weights of the run, if any; already loaded.
  """
  return {
    workdir.PARAMS: {
      'behaviors': [
        behavior.params_sha256
        if isinstance(behavior, behaviors.Exported)
        else behavior.name
        for behavior in transferred
      ],
      'init_from': exported_folder.read_checksum(weights.init_from)
      if weights and weights.init_from
      else None,
    }
  }
