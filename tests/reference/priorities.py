"""R2D2's priority of one sequence."""

import numpy as np


def sequence_priority(errors, *, max_weight):
  """eta max |delta| + (1 - eta) mean |delta|; 0 for no errors."""
  if not len(errors):
    return 0.0
  magnitudes = [abs(float(error)) for error in errors]
  mean = sum(magnitudes) / len(magnitudes)
  return np.float64(max_weight * max(magnitudes) + (1 - max_weight) * mean)
