"""All tables and figures of the paper, listed in `data/artifacts.csv`.

An artifact names arms and suites. Each scale assigns its own environments to
the suites:

  full        all environments; the paper's 57 games
  hard        environments that are hard to explore; 6 games
  ablation    environments for the ablation; 12 games
  atari_26    the 26 games of Atari 100k (Kaiser et al. 2019)
  tasks       two environments, each with its original reward, an easier and a
              harder one; Ms Pacman and Hero
  strategies  one environment that is hard to explore and one that is not;
              Montezuma's Revenge and Defender
  budgets     likewise, for several budgets of pre-training; Montezuma's
              Revenge and Pong

Source: Campos et al. 2021, arXiv:2102.13515.
"""

from typing import Mapping, NamedTuple, Sequence

import numpy as np

from bt_acme.evaluation import human_normalized_scores as atari
from experiments import arguments
from experiments.paper import data_files

Suites = Mapping[str, Sequence[str]]

PAPER_SUITES: Suites = {
  'full': atari.FULL,
  'hard': atari.HARD_EXPLORATION,
  'ablation': atari.ABLATION,
  'atari_26': atari.ATARI_26,
  'tasks': (
    *('ms_pacman', 'ms_pacman:ghosts_easy', 'ms_pacman:ghosts_hard'),
    *('hero', 'hero:miners_easy', 'hero:miners_hard'),
  ),
  'strategies': ('montezuma_revenge', 'defender'),
  'budgets': ('montezuma_revenge', 'pong'),
}

PAPER_FRAMES_PER_STEP = 4
PAPER_TRANSFER_STEPS = 1_250_000_000
PAPER_TRANSFER_FRAMES = PAPER_FRAMES_PER_STEP * PAPER_TRANSFER_STEPS  # 5B.
PAPER_PRETRAINING_STEPS = 4_000_000_000  # 16B frames.

# The arms whose policy is evaluated without learning the task.
ZERO_SHOT = ('random', 'ngu', 'rnd', 'constant')

TITLES: Mapping[str, str] = {
  row['arm']: row['title'] for row in data_files.rows('arms.csv')
}


class Artifact(NamedTuple):
  """One table or figure.

  Attributes:
    id: identifier such as `table3`.
    title: title of the table or figure.
    kind: `settings`; `suites`, a table of summaries over a suite; `scores`, a
      table with a row for each environment; `curves`; `budgets`, curves over
      steps of pre-training; or `drawing`.
    arms: the arms; arms of `ZERO_SHOT` are evaluated without transfer.
    suites: the names of the suites.
    metrics: `score`, `greedy_extra_share`, or summaries over a suite from
      `metrics.METRICS`. A figure has one metric for each suite.
    points: the shares of the transfer budget that a table shows; 0.2 is the
      paper's 1B of 5B frames.
    window: the share of the budget that a figure shows.
    columns: the number of panels in a row of a figure; 0 chooses automatically.
    has_bands: whether the lines of a figure have bands.
    scores: the paper's tables with the underlying scores of games.
  """

  id: str
  title: str
  kind: str
  arms: tuple[str, ...]
  suites: tuple[str, ...]
  metrics: tuple[str, ...]
  points: tuple[float, ...]
  window: float
  columns: int
  has_bands: bool
  scores: tuple[str, ...]

  @property
  def notes(self) -> tuple[str, ...]:
    """Irregularities in the paper."""
    rows = data_files.rows('notes.csv')
    return tuple(r['note'] for r in rows if self.id in r['artifacts'].split())


ARTIFACTS: dict[str, Artifact] = {
  artifact.id: artifact
  for artifact in data_files.typed_rows('artifacts.csv', Artifact)
}


def find(artifact_id: str) -> Artifact:
  """Returns an artifact.

  Raises:
    ValueError: if the id is unknown.
  """
  return ARTIFACTS[arguments.known('artifact', artifact_id, ARTIFACTS)]


def paper_frames(arm: str, share: float) -> float:
  """Returns an arm's frames with reward at a share of the paper's budget."""
  if arm in ZERO_SHOT:
    return 0.0
  return float(np.rint(share * PAPER_TRANSFER_FRAMES))
