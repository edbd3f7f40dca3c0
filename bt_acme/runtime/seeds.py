"""Seeds of the sessions of a run, the attempts of its nodes, and evaluations.

Without a new seed, a restarted run or node would repeat the episodes of its
previous session.
"""

import numpy as np


def for_run(seed: int, session: int) -> int:
  """Returns the seed of a session of a run; each resume starts a new session.

  Args:
    seed: the seed of the first session, in [0, 2^32 - 1].
    session: the number of earlier sessions.
  """
  return _derive(seed, session)


def for_node(seed: int, attempt: int) -> int:
  """Returns the seed of an attempt of a node within one session of the run.

  Args:
    seed: the seed of the node's first attempt, in [0, 2^32 - 1].
    attempt: the number of earlier attempts.
  """
  # The key has three numbers; all other derived seeds use shorter keys.
  return _derive(seed, attempt, 0, 0)


def for_evaluation(seed: int, point: int) -> int:
  """Returns the seed of an evaluation, which does not depend on the session.

  Args:
    seed: the seed of the run, in [0, 2^32 - 1].
    point: the evaluation point, in actor steps.
  """
  return _derive(seed, point, 0)


def _derive(seed: int, number: int, *key: int) -> int:
  if not number:
    return seed
  sequence = np.random.SeedSequence(seed, spawn_key=(number, *key))
  return int(sequence.generate_state(1)[0])
