"""What stands below a table: how its numbers came to be."""

from typing import Dict, Iterable, List, Sequence, Tuple

from experiments.harness import dataset as dataset_lib
from experiments.paper import artifacts
from experiments.paper.table_model import Row

_HOW_TO_READ = (
  "The paper's number stands beside ours, and in parentheses where games, "
  'budget or scale are not the same.'
)


def of(
  artifact: artifacts.Artifact,
  runs: Sequence[dataset_lib.Run],
  rows: Sequence[Row],
  suites: artifacts.Suites,
) -> str:
  """Seeds, worlds, budget and scale of a table, in sentences."""
  filled = [c for row in rows for c in row.cells if not c.is_missing]
  if not filled:
    return f'No run has come to a number yet. {_HOW_TO_READ}'
  scales = ', '.join(sorted({run.scale for run in runs}))
  seeds = _range(cell.seeds for cell in filled)
  sentences = [
    f'Scale {scales}; seeds of each world: {seeds}; worlds: '
    f'{_worlds(artifact, suites)}.',
    f'Budget: {_budget(runs)}.',
    _what(artifact),
  ]
  if scales == 'published':
    sentences.append("These are the paper's own means of 3 seeds.")
  elif seeds == '1':
    sentences.append('One seed has no interval.')
  elif artifact.kind == 'suites':
    sentences.append(
      'Brackets hold 95 % bootstrap intervals over seeds, worlds kept.'
    )
  return ' '.join([*sentences, _HOW_TO_READ])


def _what(artifact: artifacts.Artifact) -> str:
  if artifact.kind == 'scores':
    return (
      'Scores are mean returns of the task, ± their standard deviation over '
      'seeds (ddof 0).'
    )
  return (
    'Scores are normalized, in percent: 0 is a uniform policy, 100 a human on '
    'Atari and elsewhere the best that there is.'
  )


def _worlds(artifact: artifacts.Artifact, suites: artifacts.Suites) -> str:
  return ', '.join(
    f'{len(suites.get(suite, ()))} ({suite})'
    + ('' if _is_whole(suite, suites) else ", not the paper's")
    for suite in artifact.suites
    if suites.get(suite)
  )


def _is_whole(suite: str, suites: artifacts.Suites) -> bool:
  paper = artifacts.PAPER_SUITES.get(suite, ())
  return set(suites.get(suite, ())) == set(paper)


def _budget(runs: Sequence[dataset_lib.Run]) -> str:
  parts: List[str] = []
  transfer = [run for run in runs if run.stage == 'transfer']
  for steps, frames in _budgets(transfer):
    share = artifacts.PAPER_TRANSFER_STEPS * artifacts.PAPER_FRAMES_PER_STEP
    if not steps:
      parts.append('not stated')
    else:
      parts.append(
        f'{steps:,} steps ({frames:,} frames, {_fraction(share / frames)})'
      )
  pretraining = sorted({r.pretraining_steps for r in runs if r.pretraining_run})
  if pretraining:
    listed = ', '.join(f'{steps:,}' for steps in pretraining)
    parts.append(f'after {listed} steps of pre-training')
  return '; '.join(parts) or 'none, the task is not learned'


def _budgets(runs: Sequence[dataset_lib.Run]) -> List[Tuple[int, int]]:
  budgets: Dict[int, int] = {
    run.budget_steps: run.budget_steps * run.frames_per_step for run in runs
  }
  return sorted(budgets.items())


def _fraction(ratio: float) -> str:
  if abs(ratio - 1) < 0.01:
    return "the paper's"
  return (
    f"1/{ratio:,.0f} of the paper's" if ratio > 1 else "more than the paper's"
  )


def _range(values: Iterable[int]) -> str:
  low, *rest = sorted(set(values))
  return f'{low} to {rest[-1]}' if rest else f'{low}'
