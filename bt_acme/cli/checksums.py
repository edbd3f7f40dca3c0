"""Checksums of the parameters that a run was given, wherever they lie."""

from typing import Any, Dict, Optional, Sequence

from bt_acme import behaviors
from bt_acme.behaviors import exported_folder
from bt_acme.cli import initial_weights
from bt_acme.runtime import workdir


def compute(
  transferred: Sequence[behaviors.Behavior] = (),
  weights: Optional[initial_weights.WeightsConfig] = None,
) -> Dict[str, Any]:
  """Returns what `workdir.claim` compares instead of folders.

  Args:
    transferred: the behaviors; one that was not exported has its name in place
      of a checksum.
    weights: which weights the run starts from, if any; they have been loaded.
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
