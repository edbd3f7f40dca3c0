"""Human-normalized scores (HNS) of Atari games.

  HNS = 100 (score - random) / (human - random)  percent

`intervals` summarizes them over games, as the tables of Campos et al. 2021
(arXiv:2102.13515) do.
"""

import pathlib
from typing import Any

import numpy as np

from bt_acme.evaluation import tables

_PATH = pathlib.Path(__file__).parent / 'data' / 'atari57.csv'
_TABLE = {row['game']: row for row in tables.read_csv(_PATH)}


def _listed(name: str) -> tuple[str, ...]:
  return tuple(game for game, row in _TABLE.items() if row[name] == '1')


FULL = tuple(_TABLE)  # All 57 games.
HARD_EXPLORATION = _listed('hard_exploration')  # 6 games.
ATARI_26 = _listed('atari_26')  # Atari 100k, Kaiser et al. 2019.
ABLATION = _listed('ablation')  # 12 games.


def reference_scores(game: str) -> dict[str, float]:
  """Returns the undiscounted scores of a `random` agent and of a `human`.

  They are normalized to 0% and 100%, in this order.

  Raises:
    ValueError: if the game is not one of `FULL`.
  """
  if game not in _TABLE:
    raise ValueError(
      f'game={game!r} has no human score. Choose one of the Atari 57 in '
      "snake_case ('montezuma_revenge')."
    )
  return {who: float(_TABLE[game][who]) for who in ('random', 'human')}


def human_normalized(game: str, score: Any) -> Any:
  """Normalizes scores of a game: 0 for a random agent, 100 for a human.

  Args:
    game: one of `FULL`.
    score: an undiscounted game score, or an array of them.

  Returns:
    Percentages, float64 of the shape of `score`.

  Raises:
    ValueError: if the game is not one of `FULL`.
  """
  random, human = reference_scores(game).values()
  return 100 * ((np.asarray(score, np.float64) - random) / (human - random))
