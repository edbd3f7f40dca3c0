"""The paper's 22 quantitative claims, as data.

A claim is a few effects, each positive if the claim holds. Numbers in
statements are the paper's: human-normalized scores in percent, for which the
world-normalized score stands outside of Atari, or returns of single games.

Source: Campos et al. 2021, arXiv:2102.13515.
"""

import dataclasses
from typing import Tuple

import numpy as np

from bt_acme.evaluation import intervals
from experiments.paper import effects, readings, results
from experiments.paper.effects import HARDER, MODIFIED, ORIGINAL, Effect, Term


@dataclasses.dataclass(frozen=True)
class Claim:
  """One claim.

  Attributes:
    id: such as `C3`.
    statement: what is claimed, with the paper's numbers.
    artifact: the table or figure that shows it.
    effects: the numbers that are positive if it holds.
    note: what else a reader should know.
  """

  id: str
  statement: str
  artifact: str
  effects: Tuple[Effect, ...] = ()
  note: str = ''


_BASELINES = ('r2d2', 'ez')
_compare = effects.compare
_FINAL = results.at(1.0)
_PEAK_REST = readings.peak_over(np.max)
_PEAK_END = readings.peak_over(lambda rest: rest[-1])
_LOW_PERCENTILES = ('p40', 'p20', 'p10', 'p5')


def _num_at_random(runs: np.ndarray) -> np.ndarray:
  """The number of worlds in which an arm is no better than random."""
  return runs.shape[-1] - intervals.num_above(runs, 0)


def _negative(runs: np.ndarray) -> np.ndarray:
  return -intervals.mean(runs)


def _one_arm(
  name: str,
  suite: str,
  arm: str,
  reading: results.Reading,
  statistic: intervals.Statistic,
  worlds: Tuple[int, ...] = (),
) -> Effect:
  return Effect(name, suite, (Term(arm, reading),), statistic, worlds)


CLAIMS: Tuple[Claim, ...] = (
  Claim(
    'C1',
    'Without learning the task, the NGU policy scores higher than the RND '
    'policy, and that higher than the one of a constant reward (median '
    '81.72, 40.86, 3.46).',
    'table2',
    (_compare('ngu', 'rnd'), _compare('rnd', 'constant')),
  ),
  Claim(
    'C2',
    "The NGU policy's median grows with the budget of pre-training.",
    'fig2',
    (effects.gain('ngu', 'full'),),
  ),
  Claim(
    'C3',
    'BT(NGU) has a higher median and capped mean than both baselines (538.50 > '
    '490.12 > 418.41; 93.31 > 92.49 > 90.37; at 1B frames 273.49 > 229.75 > '
    '204.52).',
    'table3',
    (
      *(_compare('bt_ngu', *_BASELINES, share=share) for share in (1, 0.2)),
      *(_compare('r2d2', 'ez', share=share) for share in (1, 0.2)),
      _compare('bt_ngu', *_BASELINES, metric='capped_mean'),
      _compare('ez', 'r2d2', metric='capped_mean'),
    ),
  ),
  Claim(
    'C4',
    "BT(NGU)'s median lies above both baselines' throughout training.",
    'fig3',
    tuple(_compare('bt_ngu', *_BASELINES, share=i / 10) for i in range(1, 11)),
    note='Ten points of the grid are tested.',
  ),
  Claim(
    'C5',
    'In hard worlds BT(NGU) almost doubles the median of the best baseline '
    '(193.15 and 103.62; at 1B frames 100.89 and 42.55).',
    'table3',
    tuple(
      _compare('bt_ngu', *_BASELINES, suite='hard', share=share)
      for share in (1, 0.2)
    ),
  ),
  Claim(
    'C6',
    'BT works with the RND policy too (571.57 on the suite, 144.78 in hard '
    'worlds).',
    'table3',
    tuple(
      _compare('bt_rnd', *_BASELINES, suite=suite) for suite in ('full', 'hard')
    ),
  ),
  Claim(
    'C7',
    'BT(NGU) is above R2D2 at the low percentiles (316.30 / 220.97, 163.20 / '
    '132.77, 104.41 / 92.31, 65.17 / 25.57).',
    'table5',
    tuple(_compare('bt_ngu', 'r2d2', metric=p) for p in _LOW_PERCENTILES),
  ),
  Claim(
    'C8',
    'Flights and the extra action each help, and both together help most '
    '(medians 368, 224, 224, and 196 without either).',
    'table9',
    (
      *(
        _compare('bt_ngu', part, suite='ablation')
        for part in ('bt_action', 'bt_flights')
      ),
      *(
        _compare(part, 'r2d2', suite='ablation')
        for part in ('bt_action', 'bt_flights')
      ),
    ),
    "The paper's scores give 360.50 and 223.29 instead of 368 and 224.",
  ),
  Claim(
    'C9',
    'The extra action is chosen most in the first third, and less at the end.',
    'fig4',
    (
      _one_arm(
        'greedy share of a+: maximum of the first third - of the rest',
        *('ablation', 'bt_ngu', _PEAK_REST, intervals.mean),
      ),
      _one_arm(
        'greedy share of a+: maximum of the first third - at the end',
        *('ablation', 'bt_ngu', _PEAK_END, intervals.mean),
      ),
    ),
  ),
  Claim(
    'C10',
    'BT has the highest mean in all four modified tasks (8789 / 8375, 7868 / '
    '4018, 4665 / 3000, 3547 / 2677), but not in the two originals.',
    'table10',
    tuple(
      _compare(
        *('bt_ngu', 'r2d2', 'ez', 'r2d2_full'),
        suite='tasks',
        metric='mean',
        worlds=(task,),
        is_normalized=False,
        decides=task in MODIFIED,
      )
      for task in (*MODIFIED, *ORIGINAL)
    ),
  ),
  Claim(
    'C11',
    'Where its policy scores below 0 without learning (-898 and -1473), BT '
    'gains from it all the same.',
    'table10',
    tuple(
      effect
      for task in HARDER
      for effect in (
        _one_arm(
          f'minus the mean of tasks [{task}]: ngu',
          *('tasks', 'ngu', _FINAL, _negative, (task,)),
        ),
        _compare(
          *('bt_ngu', 'ngu'),
          suite='tasks',
          metric='mean',
          worlds=(task,),
          is_normalized=False,
        ),
      )
    ),
  ),
  Claim(
    'C12',
    'Loaded weights raise the median early in training, with and without BT.',
    'fig8',
    tuple(
      effects.early(f'{arm}_{init}', arm)
      for arm in ('r2d2', 'bt_ngu')
      for init in ('partial', 'full')
    ),
  ),
  Claim(
    'C13',
    'Partial initialization has a higher median than full (668.80 > 507.58, '
    'with BT 626.34 > 529.78; hard 109.33 > 104.98 and 200.32 > 168.18).',
    'table4',
    tuple(
      _compare(f'{arm}_partial', f'{arm}_full', suite=suite)
      for suite in ('full', 'hard')
      for arm in ('r2d2', 'bt_ngu')
    ),
    'The means of the paper go the other way.',
  ),
  Claim(
    'C14',
    'Weights alone do not do for hard worlds (at best 109.33, BT from scratch '
    '193.15, BT with partial initialization 200.32).',
    'table4',
    (
      _compare('bt_ngu', 'r2d2_partial', 'r2d2_full', suite='hard'),
      _compare('bt_ngu_partial', 'bt_ngu', suite='hard'),
    ),
  ),
  Claim(
    'C15',
    'BT adds to loaded weights at the low percentiles.',
    'table5',
    (
      *(
        _compare(f'bt_ngu_{init}', f'r2d2_{init}', metric=p)
        for init in ('partial', 'full')
        for p in _LOW_PERCENTILES
      ),
      _compare('bt_ngu_partial', 'r2d2_partial', decides=False),
    ),
    "In the paper's medians it does not with partial initialization.",
  ),
  Claim(
    'C16',
    'Exploring is not the aim everywhere: the NGU policy is no better than '
    'random in 5 of 57 games, the RND policy in 10.',
    'table2',
    tuple(
      _one_arm(
        f'worlds in which {arm} is no better than random',
        *('full', arm, results.normalized(_FINAL), _num_at_random),
      )
      for arm in ('ngu', 'rnd')
    ),
  ),
  Claim(
    'C17',
    'Longer pre-training raises the score after transfer in the hard world '
    'more than the score without learning; in the other it changes nothing.',
    'fig2',
    (
      effects.gain('bt_ngu', 'budgets', worlds=(0,)),
      effects.gain('bt_ngu', 'budgets', over='ngu', worlds=(0,)),
      effects.gain('bt_ngu', 'budgets', worlds=(1,), decides=False),
    ),
    note='That something changes nothing cannot be shown by an interval.',
  ),
  Claim(
    'C18',
    'Q(lambda) learns a task from less data than Retrace.',
    '',
    note='No arm learns a task with Retrace.',
  ),
  Claim(
    'C19',
    'ez-greedy helps in hard worlds (103.62 > 32.49) and costs on the suite '
    '(418.41 < 490.12).',
    'table3',
    (_compare('ez', 'r2d2', suite='hard'), _compare('r2d2', 'ez')),
  ),
  Claim(
    'C20',
    "In Montezuma's Revenge BT ends higher than fine-tuning, and that higher "
    'than R2D2 (12086.71, 2500.00, 1478.38).',
    'fig1',
    tuple(
      _compare(
        *(arm, other),
        suite='strategies',
        metric='mean',
        worlds=(world,),
        is_normalized=False,
        decides=decides,
      )
      for arm, other, world, decides in (
        ('bt_ngu', 'r2d2_full', 0, True),
        ('r2d2_full', 'r2d2', 0, True),
        ('bt_ngu', 'bt_ngu_full', 0, False),
        ('bt_ngu', 'r2d2', 1, False),
        ('bt_ngu', 'r2d2_full', 1, False),
      )
    ),
    'In Defender R2D2 ends highest in the paper: fig1 shows speed there.',
  ),
  Claim(
    'C21',
    'In modified tasks loaded weights learn faster early and often end lower.',
    'fig6',
    tuple(
      effect
      for init in ('r2d2_partial', 'r2d2_full')
      for effect in (
        effects.better_on_tasks(init, 'r2d2', readings.early_area, 'early'),
        effects.better_on_tasks('r2d2', init, _FINAL, 'at the end'),
      )
    ),
  ),
  Claim(
    'C22',
    'World by world BT(NGU) beats R2D2 in 26 of 57 and ez-greedy in 39, and in '
    '5 of the 6 hard ones it beats each.',
    'table6',
    (
      effects.wins('bt_ngu', 'r2d2', 'hard'),
      effects.wins('bt_ngu', 'ez', 'hard'),
      effects.wins('bt_ngu', 'ez', 'full'),
      effects.wins('bt_ngu', 'r2d2', 'full', decides=False),
    ),
    "Only the paper's scores say so: expect a share below a half on the suite.",
  ),
)
