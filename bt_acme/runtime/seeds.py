"""Seeds of the lives of a run and of its nodes.

What was started anew would otherwise play the episodes of the life before once
more.
"""

import numpy as np


def for_run(seed: int, life: int) -> int:
  """Returns the seed of a life of a run, which each resume begins.

  Args:
    seed: the seed of the first life, in [0, 2^32 - 1].
    life: the number of lives before it.
  """
  return _derive(seed, life)


def for_node(seed: int, life: int) -> int:
  """Returns the seed of a life of a node within one life of the run.

  Args:
    seed: the seed of the node's first life, in [0, 2^32 - 1].
    life: the number of lives before it.
  """
  # A key of three numbers, because others that derive seeds have shorter ones.
  return _derive(seed, life, 0, 0)


def _derive(seed: int, life: int, *key: int) -> int:
  if not life:
    return seed
  sequence = np.random.SeedSequence(seed, spawn_key=(life, *key))
  return int(sequence.generate_state(1)[0])
