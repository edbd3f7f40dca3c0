"""Checksums of the parameters that are passed to a run."""

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
    transferred: the behaviors. Behaviors that were not exported are identified
      by their names.
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
