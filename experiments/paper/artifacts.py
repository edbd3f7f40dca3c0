"""All tables and figures of the paper, listed in `data/tables_and_figures.csv`.

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

import json
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bt_acme.evaluation import human_normalized_scores as atari
from bt_acme.evaluation import tables
from experiments.harness import dataset

DATA = pathlib.Path(__file__).with_name('data')

Suites = Mapping[str, Sequence[str]]

# The scale `paper`; `scales` describes its fields.
_PAPER = json.loads((DATA / 'scales.json').read_text())['paper']

PAPER_SUITES: Suites = {
  'full': atari.FULL,
  'hard': atari.HARD_EXPLORATION,
  'ablation': atari.ABLATION,
  'atari_26': atari.ATARI_26,
  **_PAPER['suites'],
}

PAPER_FRAMES_PER_STEP = 4
PAPER_TRANSFER_STEPS = _PAPER['transfer_steps']
PAPER_TRANSFER_FRAMES = PAPER_FRAMES_PER_STEP * PAPER_TRANSFER_STEPS  # 5B.
PAPER_PRETRAINING_STEPS = _PAPER['pretraining_steps']  # 16B frames.


class Arm(NamedTuple):
  """An algorithm of the paper, as listed in `data/arms.json`.

  An action repeat (`ez`) has no state and no epsilon, so its arm overrides the
  preset's settings for exported behaviors.

  Attributes:
    title: the title in tables and figures.
    script: the script that trains the arm.
    settings: the flags that define the algorithm.
    policies: the arms that pre-train a policy, by the flag that takes it.
  """

  title: str
  script: str
  settings: Mapping[str, Any] = {}
  policies: Mapping[str, str] = {}


ARMS: Mapping[str, Arm] = {
  name: Arm(**fields)
  for name, fields in json.loads((DATA / 'arms.json').read_text()).items()
}
# The arms whose policy is evaluated without learning the task.
ZERO_SHOT = tuple(name for name in ARMS if ARMS[name].script == 'run_ngu')

# The arms of figure 2 by suite: policies alone, and a policy before and after
# transfer.
_BUDGET_ARMS = {
  'full': ('ngu', 'rnd', 'constant'),
  'budgets': ('ngu', 'bt_ngu'),
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
      `effects.METRICS`. A figure has one metric for each suite.
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
  def is_figure(self) -> bool:
    """Whether the artifact shows curves."""
    return self.kind in ('curves', 'budgets')

  @property
  def by_budget(self) -> bool:
    """Whether the artifact shows all snapshots of the pre-trained policies."""
    return self.kind == 'budgets'

  @property
  def notes(self) -> tuple[str, ...]:
    """Irregularities in the paper."""
    rows = tables.read_csv(DATA / 'notes.csv')
    return tuple(r['note'] for r in rows if self.id in r['artifacts'].split())

  def arms_of(self, suite: str) -> tuple[str, ...]:
    """Returns the arms that the artifact shows on a suite."""
    return _BUDGET_ARMS[suite] if self.by_budget else self.arms


ARTIFACTS: dict[str, Artifact] = {
  artifact.id: artifact
  for artifact in dataset.read_rows(DATA / 'tables_and_figures.csv', Artifact)
}


def stage_of(arm: str) -> str:
  """Returns the stage of an arm's runs, a value of `RunRow.stage`."""
  return 'zero_shot' if arm in ZERO_SHOT else 'transfer'


def paper_frames(arm: str, share: float) -> float:
  """Returns an arm's frames with reward at a share of the paper's budget."""
  if arm in ZERO_SHOT:
    return 0.0
  return float(np.rint(share * PAPER_TRANSFER_FRAMES))
