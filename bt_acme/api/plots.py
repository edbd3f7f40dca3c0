"""Plots of runs and evaluations; a notebook shows them inline."""

import pathlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bt_acme import environments
from bt_acme.api import evaluating, runs
from bt_acme.config import checks
from bt_acme.evaluation import plots

RunOrFolder = runs.Run | str | pathlib.Path


def learning_curves(
  curves: Mapping[str, RunOrFolder | Sequence[RunOrFolder]],
  *,
  value: str = 'episode_return',
  window: int = 50,
  path: str = '',
) -> plots.Picture:
  """Plots a metric of the training episodes over actor steps.

  Args:
    curves: a run or its workdir, or several with different seeds, by label. For
      several, the plot shows the mean and a band from the lowest to the
      highest.
    value: the metric: a key of `Run.episodes`.
    window: the number of episodes in each moving average.
    path: the PNG file to write; empty to write none.

  Returns:
    The figure.

  Raises:
    ValueError: if `curves` is not a dictionary or is empty, if a workdir cannot
      be loaded, or if a run has no finished episode or no such metric.

  Example:
    ```python
    # Takes about six minutes on two cores.
    task = 'MiniGrid-FourRooms-v0:fixed'
    r2d2 = [
      bt_acme.train(task, max_actor_steps=40_000, seed=seed) for seed in (0, 1)
    ]
    bt = bt_acme.transfer(task, 'minigrid-explorer', max_actor_steps=40_000)
    bt_acme.plots.learning_curves({'R2D2': r2d2, 'BT': bt}, path='curves.png')
    ```
  """
  checks.require(
    isinstance(curves, Mapping) and bool(curves),
    f'curves={curves!r} is not a dictionary of runs. Pass '
    "{'BT': run}, for example.",
  )
  checks.check_value('window', window, checks.setting(1, above=0))
  names: dict[str, None] = {}  # In the order of the runs, without duplicates.
  drawn: dict[str, list[plots.Curve]] = {}
  for label, given in curves.items():
    seeds: Any = given if isinstance(given, (list, tuple)) else [given]
    checks.require(bool(seeds), f'curves[{label!r}] is empty. Pass runs.')
    drawn[label] = []
    for seed in seeds:
      run = _loaded(seed)
      checks.require(
        bool(run.episodes), f'Run {label!r} has no finished episode yet.'
      )
      checks.require(
        value in run.episodes,
        f'value={value!r} is not an episode metric of run {label!r}. Choose '
        f'from {sorted(run.episodes)}.',
      )
      curve = plots.smoothed_curve(run.episodes, value, window=window)
      drawn[label].append(curve)
      names[run.agent.spec.name] = None
  title = ', '.join(names)
  ylabel = f'{value.replace("_", " ")}, mean of {window} episodes'
  return plots.learning_curves(path, drawn, title=title, ylabel=ylabel)


def _loaded(run: RunOrFolder) -> runs.Run:
  return run if isinstance(run, runs.Run) else runs.load_run(run)


def priorities(
  run: RunOrFolder, *, window: int = 20, path: str = ''
) -> plots.Picture:
  """Plots the learned priorities of the behaviors over actor steps, stacked.

  Args:
    run: a run of `transfer` with `flight_priorities='learned'`, or its workdir.
    window: the number of episodes in each moving average.
    path: the PNG file to write; empty to write none.

  Returns:
    The figure.

  Raises:
    ValueError: if the workdir cannot be loaded, or if the run has no learned
      priorities or no finished episode.

  Example:
    ```python
    run = bt_acme.transfer(
      'Chain-5',
      ['action_repeat', 'uniform'],
      max_actor_steps=2_000,
      flight_priorities='learned',
    )
    bt_acme.plots.priorities(run, path='priorities.png')
    ```
  """
  checks.check_value('window', window, checks.setting(1, above=0))
  run = _loaded(run)
  behaviors = run.agent.behaviors
  columns = [f'flight_priority_{k}' for k in range(len(behaviors))]
  if not columns or columns[0] not in run.episodes:
    raise ValueError(
      'run has no learned priorities. Pass a run of bt_acme.transfer with '
      "flight_priorities='learned' and at least one finished episode."
    )
  labels = [behavior.name for behavior in behaviors]
  shares = {}
  for k, (label, column) in enumerate(zip(labels, columns, strict=True)):
    name = label if labels.count(label) == 1 else f'{label} ({k})'
    shares[name] = plots.smoothed_curve(run.episodes, column, window=window)
  return plots.stacked_shares(path, shares, title=run.agent.spec.name)


def visits(
  evaluations: Mapping[str, evaluating.Evaluation],
  *,
  seed: int = 0,
  path: str = '',
) -> plots.Picture:
  """Plots a heat map of the visited cells for each evaluation.

  Args:
    evaluations: results of `evaluate`, by label. For a fair comparison, all
      should have the same number of episodes.
    seed: the seed of the layout drawn in the background, for environments
      whose layout differs between episodes.
    path: the PNG file to write; empty to write none.

  Returns:
    The figure.

  Raises:
    ValueError: if `evaluations` is not a dictionary of evaluations or is empty,
      or if an environment has no cells.

  Example:
    ```python
    behavior = bt_acme.load_behavior('minigrid-explorer')
    env = 'MiniGrid-Empty-5x5-v0'
    evaluations = {
      'behavior': bt_acme.evaluate(behavior, env=env, episodes=10),
      'random': bt_acme.evaluate(behavior, env=env, episodes=10, epsilon=1.0),
    }
    bt_acme.plots.visits(evaluations, path='visits.png')
    ```
  """
  checks.require(
    isinstance(evaluations, Mapping)
    and bool(evaluations)
    and all(isinstance(x, evaluating.Evaluation) for x in evaluations.values()),
    f'evaluations={evaluations!r} is not a dictionary of evaluations. Pass '
    "{'BT': bt_acme.evaluate(run)}, for example.",
  )
  names = ', '.join(dict.fromkeys(x.env for x in evaluations.values()))
  counts, backgrounds = {}, {}
  sizes: set[Any] = set()
  for label, played in evaluations.items():
    environment: Any = environments.make(played.env, seed=seed)
    sizes.add(getattr(environment, 'grid_size', tuple)())
    checks.require(
      all(sizes) and len(sizes) == 1,
      f'env={names!r} has no grid of cells, or several sizes. Choose '
      'environments with cells, such as MiniGrid, of one size.',
    )
    counts[label] = np.zeros(environment.grid_size()[::-1], int)
    environment.reset()
    backgrounds[label] = environment.render_rgb()
    environment.close()
    for recording in played.recordings:
      for column, row in recording.cells:
        counts[label][row, column] += 1
  return plots.heat_maps(path, counts, backgrounds, title=names)
