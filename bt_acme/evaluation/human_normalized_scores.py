"""Human-normalized scores (HNS) of Atari games, and their summaries.

  HNS = 100 (score - random) / (human - random)  percent

These definitions reproduce the tables of Campos et al. 2021 (arXiv:2102.13515):
the score of a game is the mean over seeds, the capped mean limits each game to
100 but has no lower limit, and percentiles are interpolated linearly.
"""

import difflib
import pathlib
from typing import Any, Dict, Mapping, NamedTuple, Sequence, Tuple

import numpy as np

from bt_acme.evaluation import intervals, tables


class Summary(NamedTuple):
  """A summary of human-normalized scores over games, in percent."""

  mean: float
  median: float
  capped_mean: float  # Mean of min(HNS, 100).
  percentiles: Dict[int, float]  # Keyed by `intervals.PERCENTILES`.
  num_above_random: int  # Games with HNS > 0.
  num_above_human: int  # Games with HNS > 100.
  num_games: int


class ReferenceScores(NamedTuple):
  """The undiscounted scores of a game that are normalized to 0% and 100%."""

  random: float
  human: float


_PATH = pathlib.Path(__file__).parent / 'data' / 'atari57.csv'
_TABLE = {row['game']: row for row in tables.read_csv(_PATH)}


def _listed(name: str) -> Tuple[str, ...]:
  return tuple(game for game, row in _TABLE.items() if row[name] == '1')


FULL = tuple(_TABLE)  # All 57 games.
HARD_EXPLORATION = _listed('hard_exploration')  # 6 games.
ATARI_26 = _listed('atari_26')  # Atari 100k, Kaiser et al. 2019.
ABLATION = _listed('ablation')  # 12 games.


def reference_scores(game: str) -> ReferenceScores:
  """Returns the scores of a random agent and of a human.

  Raises:
    ValueError: if the game is not one of `FULL`.
  """
  _check_known([game])
  row = _TABLE[game]
  return ReferenceScores(float(row['random']), float(row['human']))


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
  random, human = reference_scores(game)
  return 100 * ((np.asarray(score, np.float64) - random) / (human - random))


def summarize(
  scores: Mapping[str, float], games: Sequence[str] = FULL
) -> Summary:
  """Summarizes the scores of several games.

  Args:
    scores: the undiscounted score of each game, averaged over seeds. Games that
      are not in `games` are ignored.
    games: the games to summarize, such as `HARD_EXPLORATION`.

  Returns:
    The summary over `games`.

  Raises:
    ValueError: if a game is unknown, or if its score is missing or not finite.
  """
  _check_known([*games, *scores])
  _check_complete(scores, games)
  runs = np.array(
    [[human_normalized(game, float(scores[game])) for game in games]]
  )  # [1, games]
  return Summary(
    mean=float(intervals.mean(runs)),
    median=float(intervals.median(runs)),
    capped_mean=float(intervals.capped_mean(runs)),
    percentiles=dict(
      zip(
        intervals.PERCENTILES,
        intervals.percentiles(runs).tolist(),
        strict=True,
      )
    ),
    num_above_random=int(intervals.num_above(runs, 0)),
    num_above_human=int(intervals.num_above(runs, 100)),
    num_games=len(games),
  )


def _check_complete(scores: Mapping[str, float], games: Sequence[str]) -> None:
  if not games:
    raise ValueError('games is empty. Pass at least one game to summarize.')
  missing = [game for game in games if game not in scores]
  if missing:
    raise ValueError(
      f'scores lacks {len(missing)} of {len(games)} games: '
      f'{", ".join(missing)}. Add them, or summarize games without them.'
    )
  for game in games:
    if not np.isfinite(scores[game]):
      raise ValueError(
        f'scores[{game!r}]={scores[game]} is not a finite number. Exclude the '
        'run, or summarize games without this one.'
      )


def _check_known(games: Sequence[str]) -> None:
  for game in games:
    if game not in _TABLE:
      matches = difflib.get_close_matches(game.lower(), _TABLE, cutoff=0.5)
      nearest = ', '.join(repr(match) for match in matches)
      raise ValueError(
        f'game={game!r} has no human score'
        + (f': did you mean {nearest}? ' if nearest else '. ')
        + "Choose one of the Atari 57 in snake_case ('montezuma_revenge')."
      )
