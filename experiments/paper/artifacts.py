"""Every table and figure of the paper, as data.

An artifact names arms and suites. A suite is a role that each scale fills with
worlds of its own:

  full        all worlds; the paper's 57 games
  hard        those that are hard to explore; 6 games
  ablation    those on which parts of the algorithm are left out; 12 games
  atari_26    the 26 games of Atari 100k (Kaiser et al. 2019)
  tasks       two worlds, each with its own reward, an easier and a harder one;
              Ms Pacman and Hero
  strategies  one world that is hard to explore and one that is not;
              Montezuma's Revenge and Defender
  budgets     the same, for other budgets of pre-training; Montezuma's Revenge
              and Pong

Source: Campos et al. 2021, arXiv:2102.13515.
"""

import dataclasses
from typing import Dict, Mapping, Sequence, Tuple

import numpy as np

from bt_acme.config import names
from bt_acme.evaluation import human_normalized_scores as atari

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
  'random': 'uniform policy',
  'ngu': 'NGU, zero-shot',
  'rnd': 'RND, zero-shot',
  'constant': 'constant reward, zero-shot',
  'r2d2': 'R2D2',
  'ez': 'R2D2 + ez-greedy',
  'bt_ngu': 'R2D2 + BT(NGU)',
  'bt_rnd': 'R2D2 + BT(RND)',
  'bt_flights': 'R2D2 + BT(NGU), flights only',
  'bt_action': 'R2D2 + BT(NGU), extra action only',
  'r2d2_partial': 'R2D2, partial init',
  'r2d2_full': 'R2D2, full init (fine-tuning)',
  'bt_ngu_partial': 'R2D2 + BT(NGU), partial init',
  'bt_ngu_full': 'R2D2 + BT(NGU), full init',
}

_SCRATCH = ('r2d2', 'ez', 'bt_ngu', 'bt_rnd')
_R2D2_INITS = ('r2d2', 'r2d2_partial', 'r2d2_full')
_BT_INITS = ('bt_ngu', 'bt_ngu_partial', 'bt_ngu_full')
_INITS = (*_R2D2_INITS, *_BT_INITS)
_PARTS = ('r2d2', 'bt_flights', 'bt_action', 'bt_ngu')
_SUMMARIES = ('median', 'mean', 'capped_mean')

_PARTLY_FLIGHTS = (
  'For 5 games of the ablation the paper prints the numbers of flights only '
  'as those of BT(NGU), so that its column is partly without the extra action.'
)
_NOT_MOST_GAMES = (
  "In the paper's own scores BT(NGU) beats R2D2 in 26 of 57 games and BT(RND) "
  'does in 28: what rises is the median and the low percentiles.'
)
_NOT_MOST_INITS = (
  "In the paper's own scores BT(NGU) with partial initialization beats R2D2 "
  'with it in 22 of 57 games, and its interquartile mean is lower.'
)


@dataclasses.dataclass(frozen=True)
class Artifact:
  """One table or figure.

  Attributes:
    id: such as `table3`.
    title: what it shows.
    kind: `settings`; `suites`, a table of summaries over a suite; `scores`, a
      table with a row for each world; `curves`; `budgets`, curves over steps of
      pre-training; or `drawing`.
    arms: its arms; those of `ZERO_SHOT` are evaluated without transfer.
    suites: the roles of its worlds.
    metrics: what is computed: `score`, `greedy_extra_share`, or summaries over
      a suite that `metrics.METRICS` names. A figure has one for each suite.
    points: where a table looks, as shares of the budget of transfer; 0.2 stands
      for the paper's 1B of 5B frames.
    window: the share of the budget that a figure shows.
    columns: the panels of a figure in a row; by their number if 0.
    has_bands: whether the lines of a figure have bands.
    notes: what is irregular in the paper.
  """

  id: str
  title: str
  kind: str
  arms: Tuple[str, ...] = ()
  suites: Tuple[str, ...] = ()
  metrics: Tuple[str, ...] = ()
  points: Tuple[float, ...] = (1.0,)
  window: float = 1.0
  columns: int = 0
  has_bands: bool = True
  notes: Tuple[str, ...] = ()


_ALL = (
  Artifact('table1', 'Hyper-parameters', 'settings'),
  Artifact(
    'table2',
    'Policies without rewards, beside published algorithms',
    'suites',
    ('constant', 'rnd', 'ngu'),
    ('atari_26', 'atari_47', 'full'),
    ('median', 'mean', 'num_above_random', 'num_above_human'),
    notes=(
      'Which games the 47 are is not known, so only the paper has numbers '
      'there. The paper has no scores of single games for this table. Games '
      'count as at human level above 100 %.',
    ),
  ),
  Artifact(
    'table3',
    'Transfer over the suite',
    'suites',
    _SCRATCH,
    ('full', 'hard'),
    (*_SUMMARIES, 'iqm'),
    (0.2, 1.0),
    notes=(
      _PARTLY_FLIGHTS,
      _NOT_MOST_GAMES,
      'The paper has no scores of single games at 1B frames (20 %), and no '
      'interquartile means.',
    ),
  ),
  Artifact(
    'table4',
    'Loaded weights with and without behavior transfer',
    'suites',
    _INITS,
    ('full', 'hard'),
    (*_SUMMARIES, 'iqm'),
    notes=(_PARTLY_FLIGHTS, _NOT_MOST_INITS),
  ),
  Artifact(
    'table5',
    'Percentiles over the suite',
    'suites',
    (
      *('r2d2', 'bt_ngu', 'bt_rnd', 'r2d2_partial', 'bt_ngu_partial'),
      *('r2d2_full', 'bt_ngu_full'),
    ),
    ('full',),
    ('p50', 'p40', 'p20', 'p10', 'p5'),
    notes=(_PARTLY_FLIGHTS,),
  ),
  Artifact(
    'table6',
    'Scores from scratch',
    'scores',
    _SCRATCH,
    ('full',),
    ('score',),
    notes=(_PARTLY_FLIGHTS, _NOT_MOST_GAMES),
  ),
  Artifact(
    'table7',
    'Scores of R2D2 by initial weights',
    'scores',
    _R2D2_INITS,
    ('full',),
    ('score',),
  ),
  Artifact(
    'table8',
    'Scores of R2D2 + BT(NGU) by initial weights',
    'scores',
    _BT_INITS,
    ('full',),
    ('score',),
    notes=(_PARTLY_FLIGHTS,),
  ),
  Artifact(
    'table9',
    'Ablation: flights and the extra action',
    'scores',
    _PARTS,
    ('ablation',),
    ('score', 'median'),
    notes=(
      "The medians stand in the paper's text. Its 368 does not follow from its "
      'scores, which give 360.50; neither does 224 for flights only (223.29).',
    ),
  ),
  Artifact(
    'table10',
    'Modified rewards',
    'scores',
    ('r2d2', 'ez', 'r2d2_full', 'ngu', 'bt_ngu'),
    ('tasks',),
    ('score',),
    notes=(
      "The paper's original tasks are other runs than those of table6. It does "
      'not state their budget, and in the original Hero it prints R2D2 in '
      'bold, although fine-tuning is higher.',
    ),
  ),
  Artifact(
    'fig1',
    'Strategies of transfer',
    'curves',
    ('r2d2', 'r2d2_full', 'bt_ngu', 'bt_ngu_full'),
    ('strategies',),
    ('score',),
    notes=('The text does not name the arms; these are assumed.',),
  ),
  Artifact(
    'fig2',
    'Budgets of pre-training: zero-shot, and after transfer',
    'budgets',
    ('ngu', 'rnd', 'constant', 'bt_ngu'),
    ('full', 'budgets'),
    ('median', 'score'),
    notes=('The paper does not state the budget of transfer on the right.',),
  ),
  Artifact(
    'fig3',
    'Learning over the suite',
    'curves',
    _SCRATCH,
    ('full', 'hard'),
    ('median', 'median'),
  ),
  Artifact(
    'fig4',
    'Use of the extra action',
    'curves',
    ('bt_ngu',),
    ('ablation',),
    ('greedy_extra_share',),
    notes=('The paper does not name the games; these are assumed.',),
  ),
  Artifact(
    'fig5',
    'Learning with modified rewards',
    'curves',
    ('r2d2', 'ez', 'r2d2_full', 'ngu', 'bt_ngu'),
    ('tasks',),
    ('score',),
  ),
  Artifact(
    'fig6',
    'Learning with loaded weights',
    'curves',
    _INITS,
    ('full', 'hard', 'tasks'),
    ('median', 'median', 'score'),
    columns=2,
  ),
  Artifact('fig7', 'The network', 'drawing'),
  Artifact(
    'fig8',
    'The first 100M frames with loaded weights',
    'curves',
    _INITS,
    ('full', 'hard'),
    ('median', 'median'),
    window=0.02,
  ),
  Artifact(
    'fig9',
    'Learning in each world, from scratch',
    'curves',
    _SCRATCH,
    ('full',),
    ('score',),
  ),
  Artifact(
    'fig10',
    'Learning in each world, with loaded weights',
    'curves',
    _INITS,
    ('full',),
    ('score',),
    has_bands=False,
  ),
  Artifact(
    'fig11',
    'Learning in the ablation',
    'curves',
    _PARTS,
    ('ablation',),
    ('score',),
  ),
)

ARTIFACTS: Dict[str, Artifact] = {artifact.id: artifact for artifact in _ALL}


def find(artifact_id: str) -> Artifact:
  """Returns an artifact.

  Raises:
    ValueError: if there is none of that id.
  """
  if artifact_id not in ARTIFACTS:
    advice = names.suggest(artifact_id, ARTIFACTS)
    raise ValueError(f'artifact={artifact_id!r} is unknown: {advice}')
  return ARTIFACTS[artifact_id]


def paper_frames(arm: str, share: float) -> float:
  """The frames with reward of an arm at a share of the paper's budget."""
  return (
    0.0 if arm in ZERO_SHOT else float(np.rint(share * PAPER_TRANSFER_FRAMES))
  )
