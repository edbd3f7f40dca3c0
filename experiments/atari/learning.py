"""Trains R2D2 on a game, and tabulates and plots its scores from the logs."""

import datetime
import pathlib

import numpy as np

from bt_acme.config import checks
from bt_acme.evaluation import human_normalized_scores, logs, plots, tables
from experiments.atari import runs

_WINDOW = 50  # Training episodes behind each point of the curve.
_POINTS = 50  # Number of points on the curve.


def show(config: runs.TrainConfig) -> None:
  """Draws `curve.png` in the directory of the run and prints the table.

  Raises:
    ValueError: if the run has not been evaluated yet.
  """
  game, folder = config.game, config.folder
  evaluation = logs.read_columns(str(folder), 'evaluator')
  checks.require(
    bool(evaluation),
    f'workdir={str(folder)!r} contains no evaluation yet. Rerun without '
    '--draw_only to continue training.',
  )
  scores = evaluation['actor_steps'], evaluation['episode_return']
  training = training_curve(folder)
  plots.score_curve(
    str(folder / 'curve.png'),
    training,
    scores,
    {f'{k} {v:,.1f}': v for k, v in _reference(game).items()},
    title=game,
    training_label=f'training, mean of {_WINDOW} episodes',
    frames_per_actor_step=runs.FRAMES_PER_ACTOR_STEP,
  )
  actor_steps = int(
    max(steps.max(initial=0) for steps, _ in (training, scores))
  )
  frames = actor_steps * runs.FRAMES_PER_ACTOR_STEP
  seconds = datetime.timedelta(seconds=round(_seconds(folder)))
  print(
    f'\n{game}, {actor_steps:,} actor steps, {frames:,} frames\n\n'
    f'{table(game, scores)}\n\n'
    f'Wall time:       {seconds}, including interruptions\n'
    f'Learning curve:  {folder / "curve.png"}'
  )


def training_curve(folder: pathlib.Path) -> plots.Curve:
  """Returns the moving average of training scores; empty without episodes.

  Only the last point of each fiftieth of the curve is kept. If all episodes are
  equally long, the episodes of all environments end at the same time, and a
  curve through all points would look like a staircase.
  """
  columns = logs.read_columns(str(folder), 'actor')
  if not columns:
    return np.zeros(0), np.zeros(0)
  steps, values = plots.smoothed_curve(
    columns, 'episode_return', window=_WINDOW
  )
  parts = np.ceil(_POINTS * steps / steps.max(initial=1))
  is_last = np.diff(parts, append=np.inf) > 0
  return steps[is_last], values[is_last]


def table(game: str, scores: plots.Curve) -> str:
  """Compares evaluations with the scores of a random agent and a human."""
  steps, means = plots.means_by_step(scores)
  best = int(np.argmax(means))
  rows: list[list[str]] = []
  for label, actor_steps, score in (
    *((label, '', score) for label, score in _reference(game).items()),
    ('last evaluation', f'{int(steps[-1]):,}', means[-1]),
    ('best evaluation', f'{int(steps[best]):,}', means[best]),
  ):
    normalized = human_normalized_scores.human_normalized(game, score)
    rows.append([label, actor_steps, f'{score:,.1f}', f'{normalized:.1f}%'])
  return tables.table(('', 'actor steps', 'score', 'human-normalized'), rows)


def _reference(game: str) -> dict[str, float]:
  return human_normalized_scores.reference_scores(game)._asdict()


def _seconds(folder: pathlib.Path) -> float:
  """Returns the time from the first file of a run to its latest log entry."""
  latest = max(
    path.stat().st_mtime for path in (folder / 'logs').glob('*/logs.csv')
  )
  return latest - (folder / 'config.json').stat().st_mtime
