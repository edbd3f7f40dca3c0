"""Normalizes returns of all environments to a common scale.

A random policy scores 0. A human scores 100 on Atari (human-normalized scores).
In other environments, 100 is the best possible score as determined by
`small_scores`.
"""

import difflib
import functools
from typing import Any, Dict

import numpy as np

from bt_acme.evaluation import human_normalized_scores as atari
from experiments.paper import small_scores

_small_scores = functools.lru_cache(small_scores.read)


def normalize(env: str, returns: Any) -> np.ndarray:
  """Maps a random policy's return to 0 and a human's or the best one to 100.

  Args:
    env: the full name of the environment.
    returns: undiscounted returns, a number or an array.

  Returns:
    float64 of the shape of `returns`, percent.

  Raises:
    ValueError: if the reference scores of the environment are unknown.
  """
  if env in atari.FULL:
    return np.asarray(atari.human_normalized(env, returns))
  known: Dict[str, small_scores.SmallScore] = _small_scores()
  if env not in known:
    near = difflib.get_close_matches(env, [*known, *atari.FULL], cutoff=0.5)
    raise ValueError(
      f'env={env!r} has no reference scores for 0 and 100'
      + (f'; similar names are {", ".join(near)}' if near else '')
      + '. For a MiniGrid environment, run '
      f'`python -m experiments.paper.small_scores {env}`.'
    )
  random, best = known[env].random, known[env].best
  return 100 * ((np.asarray(returns, np.float64) - random) / (best - random))
