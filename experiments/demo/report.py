"""Makes the table, the figures and the videos of the demo."""

import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import bt_acme
from bt_acme import environments
from bt_acme.core import types
from bt_acme.evaluation import control_view, plots, tables, video_writer
from experiments.demo import plan as plan_lib
from experiments.harness import small_runs

_WINDOW = 50  # Episodes behind each point of a learning curve.
_FRAMES_PER_SECOND = 4.0  # Of videos.
# Grids of at most half as many columns are enlarged in videos.
_CELLS = 20
_LAST_FRAMES = 8  # The last image of a video is repeated for this many frames.
_MAPPED_EPISODES = 32  # Of each policy whose visits are drawn.

# Actions, the source of each action (OWN, EXTRA or FLIGHT), and the return.
Episode = tuple[list[int], list[int], float]


def table(plan: plan_lib.Plan) -> str:
  """Compares the policies: a row per task, with the percentage of each seed."""
  columns = ['random', 'pi_p', *plan.learners]

  def cell(task: str, name: str) -> str:
    return ' '.join(f'{100 * x:.0f}' for x in _solved(plan, name, [task]))

  rows = [[task, *(cell(task, n) for n in columns)] for task in plan.tasks]
  return tables.table(['task', *columns], rows)


def conclusion(plan: plan_lib.Plan) -> str:
  """Compares the means of two algorithms in one sentence."""

  def solved(name: str) -> str:
    runs = _solved(plan, name, plan.tasks)
    return f'{np.mean(runs):.0%} ({min(runs):.0%} to {max(runs):.0%})'

  if plan.bank:
    return (
      'Mean (lowest to highest): with the bank, R2D2 + BT solves '
      f'{solved(plan_lib.UNIFORM)} of the episodes with uniform draws and '
      f'{solved(plan_lib.LEARNED)} with learned priorities.'
    )
  count = tables.counted(len(plan.tasks) * len(plan.seeds), 'run')
  return (
    f'Mean (lowest to highest) of {count} each: R2D2 solves {solved("R2D2")} '
    f'of the episodes, R2D2 + BT {solved("R2D2 + BT")}.'
  )


def _solved(
  plan: plan_lib.Plan, name: str, tasks: Sequence[str]
) -> list[float]:
  """Returns the shares of solved episodes of an algorithm."""
  return [result['row']['solved'] for result in plan.results(name, tasks)]


def draw_behavior(plan: plan_lib.Plan) -> dict[str, pathlib.Path]:
  """Draws an episode of a shipped behavior; returns its path by title."""
  if not plan.is_shipped:
    return {}
  task = plan.tasks[0]
  (result,) = plan.results('pi_p', [task])
  episodes = [
    (actions, [types.FLIGHT] * len(actions), total)
    for actions, _, total in result['films']
  ]
  path = plan.folder / 'behavior.gif'
  _draw_video(task, episodes, str(path))
  return {f'{plan.behavior} in {task}': path}


def draw(plan: plan_lib.Plan) -> dict[str, pathlib.Path]:
  """Draws all other figures; returns their paths by title."""
  paths: dict[str, pathlib.Path] = {}
  for task in plan.tasks:
    name = task.replace('MiniGrid-', '').replace('-v0', '').replace(':', '-')
    paths[f'Curves, {name}'] = path = plan.folder / f'curves_{name}.png'
    _draw_curves(plan, task, str(path))
    if plan.bank:
      path = plan.folder / f'priorities_{name}.png'
      paths[f'Priorities, {name}'] = path
      _draw_priorities(plan, task, str(path))
  if not plan.is_shipped:
    paths['Cells visited'] = path = plan.folder / 'visits.png'
    _draw_visits(plan, str(path))
  paths['Who is in control'] = path = plan.folder / 'control.gif'
  task = plan.tasks[0]
  found = plan.results(plan.learners[-1], [task])
  films = [film for result in found for film in result['films']]
  _draw_video(task, films, str(path))
  return paths


def most_informative(episodes: Iterable[Episode]) -> Episode:
  """Returns a solved episode, with many kinds of sources, that is short."""

  def rank(episode: Episode) -> Any:
    actions, sources, total = episode
    return total > 0, len(set(sources)), -len(actions)

  return max(episodes, key=rank)


def _draw_video(task: str, episodes: Iterable[Episode], path: str) -> None:
  """Replays the actions of the most informative episode of a task.

  All episodes of the task have the same layout.
  """
  environment: Any = environments.make(task, seed=0)
  columns, _ = environment.grid_size()
  view = control_view.ControlView(environment, scale=max(1, _CELLS // columns))
  writer = video_writer.VideoWriter(path, frames_per_second=_FRAMES_PER_SECOND)
  actions, sources, total = most_informative(episodes)
  environment.reset()
  for action, source in zip(actions, sources, strict=True):
    writer.write(view.frame(source))
    environment.step(action)
  last = view.last_frame(f'end, return {total:.2f}')
  for _ in range(_LAST_FRAMES):
    writer.write(last)
  writer.close()
  environment.close()


def _draw_curves(plan: plan_lib.Plan, task: str, path: str) -> None:
  curves: dict[str, list[plots.Curve]] = {}
  for name in plan.learners:
    for curve in map(_curve, plan.results(name, [task])):
      if len(curve[0]):  # A run of few steps may have finished no episode.
        curves.setdefault(name, []).append(curve)
  plots.learning_curves(
    path,
    curves,
    title=f'{task}, {tables.counted(len(plan.seeds), "seed")}',
    ylabel=f'solved, % of {_WINDOW} training episodes',
  )


def _curve(result: small_runs.Result) -> plots.Curve:
  """Returns the percentage of recent training episodes that were solved."""
  episodes = {k: np.asarray(v) for k, v in result['episodes'].items()}
  episodes['solved'] = 100.0 * (episodes['episode_return'] > 0)
  return plots.smoothed_curve(episodes, 'solved', window=_WINDOW)


def _draw_priorities(plan: plan_lib.Plan, task: str, path: str) -> None:
  """Draws the learned priorities, averaged over the episodes of all seeds."""
  found = plan.results(plan_lib.LEARNED, [task])
  runs = [result['episodes'] for result in found]
  episodes = {
    name: np.concatenate([run[name] for run in runs]) for name in runs[0]
  }
  order = np.argsort(episodes['actor_steps'], kind='stable')
  episodes = {name: values[order] for name, values in episodes.items()}
  names = [
    behavior if isinstance(behavior, str) else behavior.algorithm
    for behavior in plan.bank
  ]
  plots.stacked_shares(
    path,
    {
      name: plots.smoothed_curve(
        episodes, f'flight_priority_{k}', window=_WINDOW
      )
      for k, name in enumerate(names)
    },
    title=f'{task}, {tables.counted(len(plan.seeds), "seed")}',
  )


def _draw_visits(plan: plan_lib.Plan, path: str) -> None:
  """Draws the visits of a random policy and of pi_p in the task's rooms."""
  (run,) = plan.runs_of('random', plan.tasks[:1])
  (behavior,) = run.transferred(plan.folder)
  evaluations = {}
  for name, epsilon in (('random', 1.0), ('pi_p', None)):
    played = bt_acme.evaluate(
      behavior,
      env=f'{run.env}:no_goal',
      episodes=_MAPPED_EPISODES,
      seed=run.seed,
      epsilon=epsilon,
    )
    cells = np.mean([recording.num_cells for recording in played.recordings])
    evaluations[f'{name}: {cells:.1f} cells per episode'] = played
  bt_acme.plots.visits(evaluations, path=path)
