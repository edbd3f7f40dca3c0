"""Figures of runs, which a notebook shows."""

from typing import Any, Mapping, Sequence, Union

import numpy as np

from bt_acme import environments
from bt_acme.api import evaluating, runs
from bt_acme.evaluation import plots


def learning_curves(
  curves: Mapping[str, Union[runs.Run, Sequence[runs.Run]]],
  *,
  value: str = 'episode_return',
  window: int = 50,
  path: str = '',
) -> plots.Picture:
  """Draws what the episodes of training brought, over actor steps.

  Args:
    curves: runs by label; several of one label are seeds, whose mean is drawn
      with a band from the lowest to the highest.
    value: a name in `Run.episodes`.
    window: the number of episodes that each point averages.
    path: the path of a PNG to write; empty for none.

  Returns:
    The figure.

  Raises:
    ValueError: if a run has no finished episode, or none has such a value.
  """
  by_label: Any = {
    label: [given] if isinstance(given, runs.Run) else list(given)
    for label, given in curves.items()
  }
  for label, seeds in by_label.items():
    for run in seeds:
      if value not in run.episodes:
        raise ValueError(
          f'value={value!r}: the run {label!r} has no such metric of its '
          f'episodes; it has {sorted(run.episodes)}.'
        )
  worlds = dict.fromkeys(
    run.agent.spec.name for seeds in by_label.values() for run in seeds
  )
  return plots.learning_curves(
    path,
    {
      label: [
        plots.smoothed_curve(run.episodes, value, window=window)
        for run in seeds
      ]
      for label, seeds in by_label.items()
    },
    title=', '.join(worlds),
    ylabel=f'{value.replace("_", " ")}, mean of {window} episodes',
  )


def visits(
  evaluations: Mapping[str, evaluating.Evaluation],
  *,
  seed: int = 0,
  path: str = '',
) -> plots.Picture:
  """Draws how often each cell of a world was visited.

  Args:
    evaluations: what `evaluate` returned, by label, of equally many episodes.
    seed: of the layout that is drawn behind, where each episode has another.
    path: the path of a PNG to write; empty for none.

  Returns:
    The figure.

  Raises:
    ValueError: if an environment has no cells.
  """
  for label, played in evaluations.items():
    if played.cells is None:
      raise ValueError(f'{label!r}: {played.env} has no cells to draw.')
  worlds = list(dict.fromkeys(played.env for played in evaluations.values()))
  environment: Any = environments.make(worlds[0], seed=seed)
  environment.reset()
  columns, rows = environment.grid_size()
  counts = {}
  for label, played in evaluations.items():
    counts[label] = np.zeros((rows, columns), np.int64)
    for recording in played.recordings:
      for column, row in recording.cells:
        counts[label][row, column] += 1
  background = environment.render_rgb()
  environment.close()
  return plots.heat_maps(path, counts, background, title=', '.join(worlds))
