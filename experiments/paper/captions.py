"""Captions of tables and figures, which describe the underlying runs."""

import collections
from collections.abc import Iterable, Sequence
from typing import Any

from bt_acme.evaluation import curve_panels
from experiments.harness.dataset import RunRow
from experiments.paper import artifacts
from experiments.paper.table_formats import Cell

_HOW_TO_READ = (
  "The paper's number follows ours, in parentheses if games, budget or scale "
  'differ.'
)


def made_of(runs: Iterable[RunRow], seeds: Iterable[int]) -> str:
  """Describes the scale, runs, seeds and budgets in a sentence.

  Args:
    runs: the runs behind a table or figure.
    seeds: the number of seeds behind each number or line.
  """
  different = set(runs)
  scales = ', '.join(sorted({run.scale for run in different}))
  parts = (
    f'Scale {scales}',
    f'{len(different)} run' + ('s' if len(different) > 1 else ''),
    f'seeds per environment: {_range(seeds)}',
    *_budgets(different),
  )
  return f'{"; ".join(parts)}.'


def of_table(
  artifact: artifacts.Artifact,
  runs: Sequence[RunRow],
  cells: Iterable[Cell],
  suites: artifacts.Suites,
) -> str:
  """Describes the seeds, environments, budget and scale of a table."""
  seeds = {cell.seeds for cell in cells if not cell.is_missing}
  if not seeds:
    return f'No run has produced a number. {_HOW_TO_READ}'
  what, interval = _WHAT[artifact.kind]
  if seeds == {1}:
    interval = 'A single seed has no interval. '
  return (
    f'{made_of(runs, seeds)} Environments: '
    f'{_environments(artifact, suites, {run.env for run in runs})}. '
    f'{what}{interval}{_HOW_TO_READ}'
  )


# Explanations of scores and intervals by kind of table.
_WHAT = {
  'scores': (
    'Scores are mean returns of the task ± standard deviation over seeds '
    '(ddof 0). ',
    '',
  ),
  'suites': (
    'Scores are normalized, in percent: 0 is a uniform policy, and 100 is a '
    'human on Atari or the best possible score elsewhere. ',
    'Brackets show 95% bootstrap intervals over seeds, with fixed '
    'environments. ',
  ),
}


def _environments(
  artifact: artifacts.Artifact, suites: artifacts.Suites, used: set[str]
) -> str:
  sizes, others = [], []
  for suite in artifact.suites:
    if envs := suites.get(suite, ()):
      missing = len(set(envs) - used)
      share = f'{len(envs) - missing} of ' if missing else ''
      sizes.append(f'{share}{len(envs)} ({suite})')
      if set(envs) != set(artifacts.PAPER_SUITES.get(suite, ())):
        others.append(suite)
  listed = ', '.join(sizes)
  if not others:
    return listed
  where = '' if len(others) == len(sizes) else f' in {", ".join(others)}'
  return f"{listed}, not the paper's{where}"


def _budgets(runs: set[RunRow]) -> list[str]:
  """Describes the ranges of frames of training and of pre-training."""
  learned, before = set(), set()
  for run in runs:
    frames = run.budget_steps * run.frames_per_step
    if run.stage == 'transfer':
      learned.add(frames)
      frames = 0
    before.add(run.pretraining_steps * run.frames_per_step or frames)
  parts = []
  if learned := learned - {0}:
    parts.append(f'trained {_range(learned)} frames{_share(max(learned))}')
  if before := before - {0}:
    whose = _whose_policies(runs)
    parts.append(f'pre-trained {_range(before)} frames{whose}')
  return parts


def _whose_policies(runs: set[RunRow]) -> str:
  """Describes whether seeds share a policy, for runs with several seeds."""
  used = collections.defaultdict[Any, dict[int, str]](dict)
  for run in runs:
    if run.pretraining_run:
      case = (run.arm, run.env, run.pretraining_steps)
      used[case][run.seed] = run.pretraining_run
  several = [policies for policies in used.values() if len(policies) > 1]
  are_shared = {len(set(policies.values())) == 1 for policies in several}
  words = {True: ', once for all seeds', False: ', for each seed'}
  return ''.join(words[kind] for kind in sorted(are_shared))


def _share(frames: int) -> str:
  """Formats a transfer budget as a share of the paper's, in parentheses."""
  ratio = artifacts.PAPER_TRANSFER_FRAMES / frames
  if abs(ratio - 1) < 0.01:
    return " (the paper's)"
  return f" (1/{ratio:,.0f} of the paper's)" if ratio > 1 else ''


def _range(values: Iterable[int]) -> str:
  low, *rest = map(curve_panels.with_unit, sorted(set(values)))
  return f'{low} to {rest[-1]}' if rest else low
