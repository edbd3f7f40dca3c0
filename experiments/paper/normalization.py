"""Returns of any world on one scale: 0 is a random policy's.

On Atari 100 is a human's (human-normalized scores); elsewhere it is the best
that there is, as `small_scores` measures it (world-normalized scores).
"""

import difflib
import functools
from typing import Any, Dict

import numpy as np

from bt_acme.evaluation import human_normalized_scores as atari
from experiments.paper import small_scores

_small_scores = functools.lru_cache(small_scores.read)


def normalize(env: str, returns: Any) -> np.ndarray:
  """Maps a random policy's return to 0, and the human's or the best to 100.

  Args:
    env: the environment's whole name.
    returns: undiscounted returns, a number or an array of them.

  Returns:
    float64 of the shape of `returns`, percent.

  Raises:
    ValueError: if nothing stands for 0 and 100 in that environment.
  """
  if env in atari.FULL:
    return np.asarray(atari.human_normalized(env, returns))
  known: Dict[str, small_scores.SmallScore] = _small_scores()
  if env not in known:
    near = difflib.get_close_matches(env, [*known, *atari.FULL], cutoff=0.5)
    raise ValueError(
      f'env={env!r} has no scores that stand for 0 and 100'
      + (f'; near are {", ".join(near)}' if near else '')
      + '. For a MiniGrid world, write them by '
      f'`python -m experiments.paper.small_scores {env}`.'
    )
  random, best = known[env].random, known[env].best
  return 100 * ((np.asarray(returns, np.float64) - random) / (best - random))
