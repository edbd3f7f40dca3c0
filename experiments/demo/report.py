"""The table and the pictures that the demo ends with."""

import pathlib
from typing import Any, Dict, List, Mapping

import numpy as np

from bt_acme import environments
from bt_acme.evaluation import plots, tables
from experiments.demo import execution, film
from experiments.demo import plan as plan_lib

_WINDOW = 50  # Episodes that a point of a learning curve averages.

Results = Mapping[plan_lib.Job, execution.Result]


def read(plan: plan_lib.Plan, folder: pathlib.Path) -> Results:
  """Reads the results of all jobs, which have ended."""
  results: Dict[plan_lib.Job, execution.Result] = {}
  for job in (*plan.jobs, plan.launched):
    result = execution.read(job, plan, folder)
    assert result is not None, job
    results[job] = result
  return results


def table(plan: plan_lib.Plan, results: Results) -> str:
  """Compares the policies on the task, seed by seed."""
  rows = [_row('random', results[plan.maps]['evaluation'])]
  for kind in (plan_lib.BEHAVIOR, *plan.kinds):
    for seed in plan.seeds:
      job = plan_lib.Job(kind, seed)
      rows.append(_row(job.label, results[job]['evaluation']))
  header = ('policy', 'solved', 'return', 'episodes', 'cells an episode')
  return tables.table(header, rows)


def _row(label: str, summary: Mapping[str, Any]) -> List[str]:
  return [
    label,
    f'{summary["solved"]:.0%}',
    f'{summary["return"]:.3f}',
    str(summary['episodes']),
    f'{summary["cells"]:.1f}',
  ]


def conclusion(plan: plan_lib.Plan, results: Results) -> str:
  """Says in one sentence how the worst and the best seeds compare."""
  solved = {
    kind: [
      results[plan_lib.Job(kind, seed)]['evaluation']['solved']
      for seed in plan.seeds
    ]
    for kind in (plan_lib.BEHAVIOR, 'r2d2', 'bt')
  }
  seeds = 'with one seed'
  if len(plan.seeds) > 1:
    seeds = f'with each of {len(plan.seeds)} seeds'
  return (
    'Of the episodes, '
    f'pi_p solves at most {max(solved[plan_lib.BEHAVIOR]):.0%}, '
    f'R2D2 at most {max(solved["r2d2"]):.0%} and '
    f'R2D2 + BT at least {min(solved["bt"]):.0%}, {seeds}.'
  )


def draw(
  plan: plan_lib.Plan, results: Results, folder: pathlib.Path
) -> Dict[str, pathlib.Path]:
  """Draws all pictures; returns their paths by what they show."""
  paths = {
    'Learning curves': folder / 'curves.png',
    'Cells visited': folder / 'visits.png',
    'Who is in control': folder / 'control.gif',
  }
  curves, visits, control = map(str, paths.values())
  _draw_curves(plan, results, curves)
  _draw_visits(plan, results, visits)
  films = [
    film.Film(**results[plan_lib.Job('bt', seed)]['film'])
    for seed in plan.seeds
  ]
  film.draw(film.best(films), control)
  return paths


def _draw_curves(plan: plan_lib.Plan, results: Results, path: str) -> None:
  curves = {}
  for kind in plan.kinds:
    curves[plan_lib.LABELS[kind]] = [
      _curve(results[plan_lib.Job(kind, seed)]) for seed in plan.seeds
    ]
  plots.learning_curves(
    path,
    curves,
    title=f'{plan_lib.TASK}, {len(plan.seeds)} seeds',
    ylabel=f'solved, % of {_WINDOW} episodes of training',
  )


def _curve(result: execution.Result) -> plots.Curve:
  """How many of the recent episodes of training were solved, in percent."""
  episodes = {k: np.asarray(v) for k, v in result['episodes'].items()}
  episodes['solved'] = 100.0 * (episodes['episode_return'] > 0)
  return plots.smoothed_curve(episodes, 'solved', window=_WINDOW)


def _draw_visits(plan: plan_lib.Plan, results: Results, path: str) -> None:
  """Draws where a random policy and pi_p go in the world of the task."""
  visits = results[plan.maps]['visits']
  world: Any = environments.make(plan_lib.MAP_WORLD, seed=0)
  world.reset()
  plots.heat_maps(
    path,
    {
      f'{name}: {visits[name]["cells"]:.1f} cells an episode': np.array(
        visits[name]['counts']
      )
      for name in execution.EPSILONS
    },
    world.render_rgb(),
    title=f'Cells visited in {plan.map_episodes} episodes without a goal',
  )
