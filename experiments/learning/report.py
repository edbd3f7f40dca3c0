"""Results of the runs as Markdown tables."""

import itertools
from typing import Any, Callable, List, Mapping, Sequence

import numpy as np

from bt_acme.evaluation import intervals
from experiments.learning import claims

_TRANSFER = ('return', 'solved', 'training_return', 'extra_action')
_COLUMNS = {
  'memory': ('return',),
  'coverage': ('cells',),
  'transfer': _TRANSFER,
  'deceptive': _TRANSFER,
}

Scores = Mapping[str, Any]


def report(
  runs: Sequence[claims.Run],
  num_seeds: int,
  read: Callable[[claims.Run, int], Scores],
) -> str:
  """Makes a Markdown table for each claim and world.

  Args:
    runs: the runs to report; those of a claim and world follow each other.
    num_seeds: seeds of each run.
    read: gives the scores of a run and seed.

  Returns:
    Interquartile means over the seeds, with 95 % bootstrap intervals.
  """
  lines: List[str] = []
  for (claim, world), group in itertools.groupby(
    runs, lambda run: (run.claim, run.world)
  ):
    names = _COLUMNS[claim]
    header = ('algorithm', 'actor steps', *names, 'seconds a run')
    lines += ['', f'**{claim}**, {world}', '']
    lines.append(_row(name.replace('_', ' ') for name in header))
    lines.append('|' + '---|' * len(header))
    for run in group:
      scores = [read(run, seed) for seed in range(num_seeds)]
      lines.append(_row(_cells(run, scores, names)))
  return '\n'.join(lines)


def _cells(
  run: claims.Run, scores: List[Scores], names: Sequence[str]
) -> List[str]:
  seconds = np.mean([score['seconds'] for score in scores])
  return [
    run.algorithm,
    f'{run.actor_steps:,}',
    *(_interval(scores, name) for name in names),
    f'{seconds:.0f}',
  ]


def _interval(scores: List[Scores], name: str) -> str:
  """Mean and interval over seeds, or nothing for what the run does not have."""
  if name not in scores[0]:
    return ''
  values = np.array([[score[name]] for score in scores])  # [seeds, 1 task]
  mean = intervals.bootstrap(intervals.interquartile_mean, values)
  digits = 1 if name == 'cells' else 2
  return (
    f'{mean.value:.{digits}f} [{mean.low:.{digits}f}, {mean.high:.{digits}f}]'
  )


def _row(cells: Any) -> str:
  return '| ' + ' | '.join(cells) + ' |'
