"""Formats the tables of the claims as Markdown."""

import pathlib
from typing import Any, List, Sequence

import numpy as np

from bt_acme import files
from bt_acme.evaluation import intervals
from bt_acme.evaluation import tables as tables_lib
from experiments.harness import sections
from experiments.learning import claims, results

_TITLES = {
  'solved': 'solved, % (95% interval)',
  'seeds': 'seeds ≥ 95%',
  'each': 'each seed, %',
  'return': 'return (95% interval)',
  'cells': 'cells (95% interval)',
  'cells_25': 'at 25%',
  'cells_50': 'at 50%',
  'cells_75': 'at 75%',
  'training_solved': 'solved in training, %',
}
README = pathlib.Path(__file__).parents[1] / 'README.md'
_BEGIN = (
  '<!-- The tables of results.csv: python -m experiments.learning --publish -->'
)
_END = '<!-- End of the tables. -->'
_SOLVED = 0.95  # A seed counts as solved from this share of solved episodes.


def report(
  tables: Sequence[claims.Table],
  found: results.Results,
) -> str:
  """Makes a Markdown table for each claim and environment.

  Args:
    tables: the tables to make.
    found: the existing results. Tables without results are listed at the end.

  Returns:
    Markdown with interquartile means over seeds and their 95% bootstrap
    intervals (Agarwal et al. 2021, arXiv:2108.13264), and individual seeds.
  """
  lines: List[str] = []
  claim = ''
  missing: List[str] = []
  for table in tables:
    if not any(job in found for job in results.jobs([table])):
      missing.append(f'{table.claim} on {table.env}')
      continue
    if table.claim != claim:
      claim = table.claim
      lines += ['', f'### {claim}', '', claims.CLAIMS[claim]]
    titles = [_TITLES[column] for column in table.columns]
    lines += ['', f'**{table.env}**', '']
    header = ['algorithm', 'actor steps', 'seeds', *titles, 's']
    rows = [_row(run, table, found) for run in table.runs]
    lines.append(tables_lib.markdown(header, rows, 'l' * len(header)))
  if missing:
    lines += ['', f'Tables without any results: {"; ".join(missing)}.']
  return '\n'.join(lines[1:])


def _row(
  run: claims.Run, table: claims.Table, found: results.Results
) -> List[str]:
  jobs = [results.Job(run, seed) for seed in table.seeds]
  rows = [found[job] for job in jobs if job in found]
  first = [run.algorithm, f'{run.actor_steps:,}', str(len(rows))]
  if not rows:
    return [*first, *('not run' for _ in table.columns), '']
  seconds = f'{np.mean([row["seconds"] for row in rows]):.0f}'
  return [*first, *(_cell(rows, column) for column in table.columns), seconds]


def _cell(rows: Any, column: str) -> str:
  """Summarizes one column of a run over seeds."""
  if column in ('seeds', 'each'):
    solved = [row['solved'] for row in rows]
    if column == 'each':
      return ' '.join(f'{100 * value:.0f}' for value in solved)
    return f'{sum(value >= _SOLVED for value in solved)} of {len(solved)}'
  values = np.array([row[column] for row in rows if column in row])
  if not values.size:
    return ''
  if column in ('training_solved', 'cells_25', 'cells_50', 'cells_75'):
    scale, digits = (100, 0) if column == 'training_solved' else (1, 1)
    return f'{scale * np.mean(values):.{digits}f}'
  scale, digits = {'solved': (100, 0), 'cells': (1, 1)}.get(column, (1, 2))
  if len(values) < 2:
    return f'{scale * values[0]:.{digits}f}'
  estimate = intervals.bootstrap(
    intervals.interquartile_mean, scale * values[:, None]
  )
  return (
    f'{estimate.value:.{digits}f} '
    f'[{estimate.low:.{digits}f}, {estimate.high:.{digits}f}]'
  )


def rendered_readme(readme: str) -> str:
  """Returns the README with the tables of the published results."""
  tables = claims.tables()
  found = results.read(results.jobs(tables), [results.PUBLISHED])
  return sections.replaced(readme, _BEGIN, report(tables, found), _END)


def publish() -> None:
  """Updates the tables of published results in experiments/README.md."""
  files.write_text(README, rendered_readme(README.read_text()))
