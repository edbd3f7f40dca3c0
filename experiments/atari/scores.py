"""Tabulates and plots the scores of a run on a game from its logs."""

import datetime
import pathlib
from typing import List, NamedTuple

import numpy as np

from bt_acme.config import checks
from bt_acme.evaluation import human_normalized_scores, logs, plots, tables
from experiments.atari import runs

_WINDOW = 50  # Training episodes behind each point of the curve.
_POINTS = 50  # Number of points on the curve.


class Scores(NamedTuple):
  """The scores of a run.

  Attributes:
    game: the name of the game.
    folder: the directory of the run.
    training: the moving average of training scores; empty if there are too few
      episodes.
    evaluation: the scores of all evaluation episodes, of which there is at
      least one.
    seconds: the time from the start of the run to its latest log entry.
  """

  game: str
  folder: pathlib.Path
  training: plots.Curve
  evaluation: plots.Curve
  seconds: float


def read(folder: pathlib.Path, game: str) -> Scores:
  """Reads the logs of a run.

  Raises:
    ValueError: if the run has not been evaluated yet.
  """
  evaluation = _read_returns(folder, 'evaluator')
  checks.require(
    len(evaluation[0]) > 0,
    f'workdir={str(folder)!r} contains no evaluation yet. Rerun without '
    '--draw_only to continue training.',
  )
  steps, returns = _read_returns(folder, 'actor')
  training = plots.smoothed_curve(
    {'actor_steps': steps, 'episode_return': returns},
    'episode_return',
    window=_WINDOW,
  )
  return Scores(game, folder, _thinned(training), evaluation, _seconds(folder))


def _thinned(curve: plots.Curve) -> plots.Curve:
  """Keeps only the last point of each fiftieth of a curve.

  If all episodes are equally long, the episodes of all environments end at the
  same time, and a curve through all points would look like a staircase.
  """
  steps, values = curve
  parts = np.ceil(_POINTS * steps / steps.max(initial=1))
  is_last = np.diff(parts, append=np.inf) > 0
  return steps[is_last], values[is_last]


def _read_returns(folder: pathlib.Path, label: str) -> plots.Curve:
  """Reads the actor steps and returns of a log; empty if there is no log."""
  columns = logs.read_columns(str(folder), label)
  if not columns:
    return np.zeros(0), np.zeros(0)
  return columns['actor_steps'], columns['episode_return']


def _seconds(folder: pathlib.Path) -> float:
  """Returns the time from the first file of a run to its latest log entry."""
  latest = max(
    path.stat().st_mtime for path in (folder / 'logs').glob('*/logs.csv')
  )
  return latest - (folder / 'config.json').stat().st_mtime


def show(scores: Scores) -> None:
  """Draws `curve.png` in the directory of the run and prints the table."""
  path = scores.folder / 'curve.png'
  draw(scores, path)
  actor_steps = int(max(curve[0].max(initial=0) for curve in scores[2:4]))
  frames = actor_steps * runs.FRAMES_PER_ACTOR_STEP
  print(f'\n{scores.game}, {actor_steps:,} actor steps, {frames:,} frames\n')
  print(table(scores))
  seconds = datetime.timedelta(seconds=round(scores.seconds))
  print(f'\nWall time:       {seconds}, including interruptions')
  print(f'Learning curve:  {path}')


def table(scores: Scores) -> str:
  """Compares evaluations with the scores of a random agent and a human."""
  steps, means = plots.means_by_step(scores.evaluation)
  best = int(np.argmax(means))
  reference = human_normalized_scores.reference_scores(scores.game)
  rows = [
    _row(scores.game, 'random', reference.random),
    _row(scores.game, 'human', reference.human),
    _row(scores.game, 'last evaluation', means[-1], f'{int(steps[-1]):,}'),
    _row(scores.game, 'best evaluation', means[best], f'{int(steps[best]):,}'),
  ]
  return tables.table(('', 'actor steps', 'score', 'human-normalized'), rows)


def _row(
  game: str, label: str, score: float, actor_steps: str = ''
) -> List[str]:
  normalized = human_normalized_scores.human_normalized(game, score)
  return [label, actor_steps, f'{score:,.1f}', f'{normalized:.1f}%']


def draw(scores: Scores, path: pathlib.Path) -> None:
  """Draws training, evaluation, random and human scores."""
  reference = human_normalized_scores.reference_scores(scores.game)
  plots.score_curve(
    str(path),
    scores.training,
    scores.evaluation,
    {f'{k} {v:,.1f}': v for k, v in reference._asdict().items()},
    title=scores.game,
    training_label=f'training, mean of {_WINDOW} episodes',
    frames_per_actor_step=runs.FRAMES_PER_ACTOR_STEP,
  )
