"""Shows the scores of a run on an Atari game, finished or not.

  python launch/run_r2d2.py --env=road_runner --preset=atari_small \
    --max_actor_steps=250000 --workdir=runs/road_runner
  python -m experiments.atari.scores --workdir=runs/road_runner

The table compares the evaluations with the scores of a random agent and a
human, and `curve.png` in the directory of the run shows them over time.
"""

import dataclasses
import pathlib

import numpy as np

from bt_acme.config import checks
from bt_acme.evaluation import (
  curve_panels,
  human_normalized_scores,
  logs,
  plots,
  tables,
)
from bt_acme.runtime import workdir as workdir_lib
from experiments import command_line

_WINDOW = 50  # Training episodes behind each point of the curve.
_FRAMES_PER_ACTOR_STEP = 4


@dataclasses.dataclass(frozen=True)
class ScoresConfig:
  """Settings of the command.

  Attributes:
    workdir: Directory of the run.
  """

  workdir: str = 'runs/road_runner'

  def __post_init__(self) -> None:
    checks.check(self)


def run(config: ScoresConfig) -> int:
  """Draws `curve.png` in the directory of the run and prints the table.

  Raises:
    ValueError: if the directory does not contain a run on an Atari game, or if
      the run has not been evaluated yet.
  """
  folder = pathlib.Path(config.workdir).absolute()
  env = str(workdir_lib.read_identity(str(folder))['run']['env'])
  game = env.partition(':pixels')[0]
  levels = human_normalized_scores.reference_scores(game)
  evaluation = logs.read_columns(str(folder), 'evaluator')
  checks.require(
    bool(evaluation),
    f'workdir={str(folder)!r} contains no evaluation yet. Continue the run '
    'first.',
  )
  scores = evaluation['actor_steps'], evaluation['episode_return']
  training = np.zeros(0), np.zeros(0)
  if columns := logs.read_columns(str(folder), 'actor'):
    training = plots.smoothed_curve(columns, 'episode_return', window=_WINDOW)
  lines = (
    curve_panels.Line(f'training, mean of {_WINDOW} episodes', *training),
    curve_panels.Line('evaluation', *plots.means_by_step(scores)),
  )
  labeled = {f'{label} {level:,.1f}': level for label, level in levels.items()}
  panel = curve_panels.Panel(game, 'score', lines, labeled)
  curve_panels.draw(
    folder / 'curve', [panel], columns=1, xlabel='actor steps', formats=('png',)
  )
  actor_steps = int(max((*training[0], *scores[0])))
  frames = actor_steps * _FRAMES_PER_ACTOR_STEP
  print(
    f'\n{game}, {actor_steps:,} actor steps, {frames:,} frames\n\n'
    f'{table(game, scores)}\n\n'
    f'Learning curve: {folder / "curve.png"}'
  )
  return 0


def table(game: str, scores: plots.Curve) -> str:
  """Compares evaluations with the scores of a random agent and a human."""
  steps, means = plots.means_by_step(scores)
  levels = human_normalized_scores.reference_scores(game)
  best = int(np.argmax(means))
  rows: list[list[str]] = []
  for label, actor_steps, score in (
    *((label, '', score) for label, score in levels.items()),
    ('last evaluation', f'{int(steps[-1]):,}', means[-1]),
    ('best evaluation', f'{int(steps[best]):,}', means[best]),
  ):
    normalized = human_normalized_scores.human_normalized(game, score)
    rows.append([label, actor_steps, f'{score:,.1f}', f'{normalized:.1f}%'])
  return tables.table(('', 'actor steps', 'score', 'human-normalized'), rows)


if __name__ == '__main__':
  command_line.run(ScoresConfig, run)
