"""Formats the tables of the claims as Markdown."""

import functools
import itertools
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from bt_acme import files
from bt_acme.evaluation import curve_panels, intervals
from bt_acme.evaluation import tables as tables_lib
from experiments.harness import sections
from experiments.learning import claims, results

# The columns of tables, by name; the file describes their properties.
_COLUMNS = {
  row['column']: row
  for row in tables_lib.read_csv(
    pathlib.Path(__file__).with_name('columns.csv')
  )
}
README = pathlib.Path(__file__).with_name('README.md')
_BEGIN = (
  '<!-- The tables of results.csv: python -m experiments.learning --publish -->'
)
_END = '<!-- End of the tables. -->'
_SOLVED = 0.95  # A seed counts as solved from this share of solved episodes.
_FEWEST_TASKS = 3  # Claims with as many comparable tasks have a summary.
_PROFILE = pathlib.Path(__file__).parents[2] / 'docs/performance_profile.png'


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
  lines: list[str] = []
  missing: list[str] = []
  for claim, group in itertools.groupby(tables, lambda table: table.claim):
    shown = []
    for table in group:
      if any(run in found for run in results.runs([table])):
        shown.append(table)
      else:
        missing.append(f'- {table.claim} on {table.env}')
    if shown:
      lines += ['', f'## {claim}', '', claims.CLAIMS[claim]]
      lines += _summary(shown, found)
      lines += [line for table in shown for line in _table(table, found)]
  if missing:
    lines += ['', 'Tables without any results:', '', *missing]
  return '\n'.join(lines[1:])


def _table(table: claims.Table, found: results.Results) -> list[str]:
  """Makes the table of a task."""
  titles = [_COLUMNS[column]['title'] for column in table.columns]
  header = ['algorithm', 'actor steps', 'seeds', *titles, 's']
  rows = [_row(run, table, found) for run in table.runs]
  text = tables_lib.markdown(header, rows, 'l' * len(header))
  return ['', f'**{table.env}**', '', text]


def solved_episodes(
  tables: Sequence[claims.Table], found: results.Results, column: str = 'solved'
) -> dict[str, np.ndarray]:
  """Returns the solved episodes of comparable tasks.

  Args:
    tables: the tables of a claim. Tables without the column `solved` do not
      count: any episode of their environments has a positive return.
    found: the existing results.
    column: `solved`, or `training_solved` for the episodes of training.

  Returns:
    The algorithms, and for each the share of solved episodes in %, float
    [seeds, tasks], of the seeds with which all tasks have been run; NaN for
    algorithms without training. Empty if the tables have different algorithms,
    or no common seed.
  """
  tables = [table for table in tables if 'solved' in table.columns]
  arms = {tuple(run.algorithm for run in table.runs) for table in tables}
  if len(arms) != 1:
    return {}
  runs = [run for table in tables for run in table.runs]
  shares = [
    [found[run.with_seed(seed)].get(column, np.nan) for run in runs]
    for seed in tables[0].seeds
    if all(run.with_seed(seed) in found for run in runs)
  ]
  if not shares:
    return {}
  by_algorithm = np.reshape(shares, [len(shares), len(tables), -1])
  return {
    algorithm: 100 * by_algorithm[:, :, i]
    for i, algorithm in enumerate(arms.pop())
  }


def _summary(
  tables: Sequence[claims.Table], found: results.Results
) -> list[str]:
  """Makes the table over all tasks of a claim, if they are comparable."""
  solved = solved_episodes(tables, found)
  *_, (last, best) = solved.items() or [('', np.empty([0, 0]))]
  num_seeds, num_tasks = best.shape
  if num_tasks < _FEWEST_TASKS or num_seeds < 2:
    return []  # Without a second seed, no interval can be estimated.
  header = [
    *('algorithm', 'mean solved, %', 'IQM solved, % (95% interval)'),
    *('tasks solved with all seeds', f'P({last} > algorithm) (95% interval)'),
    f'{last} - algorithm, paired by seed, % (95% interval)',
    *('in training: mean solved, %', f'{last} - algorithm, paired by seed'),
  ]
  training = solved_episodes(tables, found, 'training_solved')
  rows = [
    [
      algorithm,
      f'{np.mean(runs):.0f}',
      _interval(intervals.bootstrap(intervals.interquartile_mean, runs), 0),
      f'{np.sum(np.all(runs >= 100 * _SOLVED, axis=0))} of {num_tasks}',
      '' if algorithm == last else _probability(best, runs),
      _improvement(best, runs),
      f'{np.mean(training[algorithm]):.0f}'.replace('nan', ''),
      _improvement(training[last], training[algorithm]),
    ]
    for algorithm, runs in solved.items()
  ]
  text = tables_lib.markdown(header, rows, 'l' * len(header))
  title = f'**All {num_tasks} tasks, {tables_lib.counted(num_seeds, "seed")}**'
  return ['', title, '', text]


def _probability(best: np.ndarray, runs: np.ndarray) -> str:
  statistic = intervals.probability_of_improvement
  return _interval(intervals.bootstrap(statistic, best, runs), 2)


def _improvement(best: np.ndarray, runs: np.ndarray) -> str:
  if runs is best or np.isnan(best - runs).any():
    return ''
  return _interval(intervals.bootstrap(intervals.mean, best - runs), 0)


def profile(
  tables: Sequence[claims.Table], found: results.Results
) -> curve_panels.Panel:
  """Makes the performance profile of comparable tasks.

  Args:
    tables: the tables of a claim, which have results.
    found: the existing results.

  Returns:
    For each algorithm, the share of runs that solve more than tau % of the
    episodes, with 95% intervals over seeds (Agarwal et al. 2021, Sec. 4.2).
  """
  taus = np.linspace(0.0, 99.0, 100)
  at_taus = functools.partial(intervals.performance_profile, taus=taus)
  estimates = {
    algorithm: intervals.bootstrap(at_taus, runs)
    for algorithm, runs in solved_episodes(tables, found).items()
  }
  return curve_panels.Panel(
    '',
    'runs, %',
    tuple(
      curve_panels.Line(name, taus, *(100 * share for share in each))
      for name, each in estimates.items()
    ),
  )


def _row(
  run: claims.Run, table: claims.Table, found: results.Results
) -> list[str]:
  runs = [run.with_seed(seed) for seed in table.seeds]
  rows = [found[each] for each in runs if each in found]
  cells, seconds = ['not run'] * len(table.columns), ''
  if rows:
    cells = [_cell(rows, column) for column in table.columns]
    seconds = f'{np.mean([row["seconds"] for row in rows]):.0f}'
  first = [run.algorithm, f'{run.actor_steps:,}', str(len(rows))]
  return [*first, *cells, seconds]


def _cell(rows: Any, column: str) -> str:
  """Summarizes one column of a run over seeds."""
  if column == 'seeds':
    return f'{sum(row["solved"] >= _SOLVED for row in rows)} of {len(rows)}'
  if column == 'each':
    return ' '.join(f'{100 * row["solved"]:.0f}' for row in rows)
  if column.startswith('each_'):
    name = column.removeprefix('each_')
    return ' '.join(f'{row[name]:.0f}' for row in rows if name in row)
  shown = _COLUMNS[column]
  scale = 100 if shown['is_share'] else 1
  values = scale * np.array([row[column] for row in rows if column in row])
  if not values.size:
    return ''
  digits = int(shown['decimals'])
  if not shown['has_interval'] or len(values) < 2:
    return f'{np.mean(values):.{digits}f}'
  return _interval(
    intervals.bootstrap(intervals.interquartile_mean, values[:, None]), digits
  )


def _interval(estimate: intervals.Estimate, digits: int) -> str:
  return (
    f'{estimate.value:.{digits}f} '
    f'[{estimate.low:.{digits}f}, {estimate.high:.{digits}f}]'
  )


def rendered_readme(readme: str) -> str:
  """Returns the README with the tables of the published results."""
  tables = claims.tables()
  found = results.read(results.runs(tables), results.PUBLISHED)
  return sections.replaced(readme, _BEGIN, report(tables, found), _END)


def publish() -> None:
  """Updates the tables in README.md, and the figure of `wide`."""
  tables = [table for table in claims.tables() if table.claim == 'wide']
  found = results.read(results.runs(tables), results.PUBLISHED)
  curve_panels.draw(
    _PROFILE.with_suffix(''),
    [profile(tables, found)],
    columns=1,
    xlabel='more than this share of episodes solved, %',
    formats=('png',),
  )
  files.write_text(README, rendered_readme(README.read_text()))
