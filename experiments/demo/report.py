"""Makes the table and the figures of the demo."""

import pathlib
from typing import Any, Dict, List, Mapping

import numpy as np

from bt_acme import environments
from bt_acme.evaluation import plots, tables
from experiments.demo import episode_video
from experiments.demo import plan as plan_lib
from experiments.harness import small_runs

_WINDOW = 50  # Episodes behind each point of a learning curve.

Results = Mapping[plan_lib.Job, small_runs.Result]


def read(plan: plan_lib.Plan, folder: pathlib.Path) -> Results:
  """Reads the results of all jobs, which must have finished."""
  results: Dict[plan_lib.Job, small_runs.Result] = {}
  for job in (*plan.jobs, plan.launched):
    result = job.result(folder)
    assert result is not None, job
    results[job] = result
  return results


def table(plan: plan_lib.Plan, results: Results) -> str:
  """Compares the policies on the task, seed by seed."""
  rows = [_row('random', plan, results[plan.maps])]
  for algorithm in ('pi_p', *plan.learners):
    for seed in plan.seeds:
      job = plan.job(algorithm, seed)
      rows.append(_row(plan_lib.label(job), plan, results[job]))
  header = ('policy', 'solved', 'return', 'episodes', 'cells per episode')
  return tables.table(header, rows)


def _row(
  label: str, plan: plan_lib.Plan, result: small_runs.Result
) -> List[str]:
  row = result['row']
  return [
    label,
    f'{row["solved"]:.0%}',
    f'{row["return"]:.3f}',
    str(plan.episodes),
    f'{row["cells"]:.1f}',
  ]


def conclusion(plan: plan_lib.Plan, results: Results) -> str:
  """Compares the worst and the best seeds in one sentence."""
  solved = {
    algorithm: [
      results[plan.job(algorithm, seed)]['row']['solved'] for seed in plan.seeds
    ]
    for algorithm in ('pi_p', 'R2D2', 'R2D2 + BT')
  }
  seeds = 'with one seed'
  if len(plan.seeds) > 1:
    seeds = f'with each of {len(plan.seeds)} seeds'
  return (
    f'pi_p solves at most {max(solved["pi_p"]):.0%} of the episodes, '
    f'R2D2 at most {max(solved["R2D2"]):.0%} and '
    f'R2D2 + BT at least {min(solved["R2D2 + BT"]):.0%}, {seeds}.'
  )


def draw(
  plan: plan_lib.Plan, results: Results, folder: pathlib.Path
) -> Dict[str, pathlib.Path]:
  """Draws all figures; returns their paths by title."""
  paths = {
    'Learning curves': folder / 'curves.png',
    'Cells visited': folder / 'visits.png',
    'Who is in control': folder / 'control.gif',
  }
  curves, visits, control = map(str, paths.values())
  _draw_curves(plan, results, curves)
  _draw_visits(plan, results, visits)
  episodes = [
    episode_video.Episode(*one)
    for seed in plan.seeds
    for one in results[plan.job('R2D2 + BT', seed)]['films']
  ]
  episode_video.draw(episode_video.best(episodes), control)
  return paths


def _draw_curves(plan: plan_lib.Plan, results: Results, path: str) -> None:
  curves = {
    name: [_curve(results[plan.job(name, seed)]) for seed in plan.seeds]
    for name in plan.learners
  }
  plots.learning_curves(
    path,
    curves,
    title=f'{plan_lib.TASK}, {len(plan.seeds)} seeds',
    ylabel=f'solved, % of {_WINDOW} training episodes',
  )


def _curve(result: small_runs.Result) -> plots.Curve:
  """Returns the percentage of recent training episodes that were solved."""
  episodes = {k: np.asarray(v) for k, v in result['episodes'].items()}
  episodes['solved'] = 100.0 * (episodes['episode_return'] > 0)
  return plots.smoothed_curve(episodes, 'solved', window=_WINDOW)


def _draw_visits(plan: plan_lib.Plan, results: Results, path: str) -> None:
  """Draws the visits of a random policy and of pi_p in the task's rooms."""
  visits = results[plan.maps]['visits']
  environment: Any = environments.make(plan_lib.MAP_ENV, seed=0)
  environment.reset()
  plots.heat_maps(
    path,
    {
      f'{name}: {visits[name]["cells"]:.1f} cells per episode': np.array(
        visits[name]['counts']
      )
      for name in visits
    },
    environment.render_rgb(),
    title=f'Cells visited in {plan.map_episodes} episodes without a goal',
  )
