"""Seeds of the lives of a node.

A node that was started anew would otherwise play the episodes of the life
before once more.
"""

import numpy as np


def of_life(seed: int, life: int) -> int:
  """Returns the seed of a life.

  Args:
    seed: the seed of the first life, in [0, 2^32 - 1].
    life: the number of lives before it.
  """
  if not life:
    return seed
  # A key of three numbers, because others that derive seeds have shorter ones.
  sequence = np.random.SeedSequence(seed, spawn_key=(life, 0, 0))
  return int(sequence.generate_state(1)[0])
