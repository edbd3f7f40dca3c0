"""Learns a real Atari game on two cores.

  python -m experiments.atari.learn --game=road_runner

This command trains R2D2 with the launch script and `--preset=atari_small`, and
compares its scores with those of a random agent and a human. Ctrl-C stops the
run, and the same command resumes it. `--draw_only` skips training.
"""

import dataclasses
import datetime
import functools
import pathlib
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from bt_acme import environments
from bt_acme.config import checks
from bt_acme.config import run as run_config
from bt_acme.evaluation import (
  curve_panels,
  human_normalized_scores,
  logs,
  plots,
  tables,
)
from bt_acme.runtime import workdir as workdir_lib
from experiments import command_line, launching

_WINDOW = 50  # Training episodes behind each point of the curve.
_PRESET = 'atari_small'
_FRAMES_PER_ACTOR_STEP = 4


@dataclasses.dataclass(frozen=True)
class TrainConfig:
  """Settings of training with R2D2.

  Attributes:
    game: Name of the game, one of the 57 Atari games.
    max_actor_steps: Budget of training in actor steps of 4 frames each.
    workdir: Directory of the run. Defaults to runs/atari/GAME for `learn` and
      to runs/atari/GAME_ngu for `explore`.
    seed: Random seed of the run and of the games played after training.
    draw_only: Whether to skip training and draw the existing run in the
      workdir.
  """

  game: str = 'road_runner'
  max_actor_steps: int = checks.setting(250_000, above=0)
  workdir: str = ''
  seed: int = checks.setting(0, minimum=0, maximum=run_config.LARGEST_SEED)
  draw_only: bool = False

  script: ClassVar[str] = 'run_r2d2.py'  # The launch script.
  more_flags: ClassVar[Sequence[str]] = ()  # Additional flags of the script.
  suffix: ClassVar[str] = ''  # Suffix of the default workdir.

  def __post_init__(self) -> None:
    checks.check(self)
    environments.validate(self.game)
    self.check_game()

  def check_game(self) -> None:
    """Raises ValueError unless the run can be shown."""
    human_normalized_scores.reference_scores(self.game)

  @property
  def folder(self) -> pathlib.Path:
    """The absolute path of the run's directory."""
    own = f'runs/atari/{self.game}{self.suffix}'
    return pathlib.Path(self.workdir or own).absolute()


def run(
  config: TrainConfig,
  show: Callable[[Any], None],
  launch: launching.Launch = launching.launch,
) -> int:
  """Trains unless `draw_only` is set, then shows the run.

  Args:
    config: the settings of the run.
    show: called with the settings after training.
    launch: runs a launch script with flags and returns its exit code.

  Returns:
    An exit code.

  Raises:
    ValueError: if the directory does not contain a run on the game, or if the
      run cannot be shown.
  """
  flags = [
    f'--preset={_PRESET}',
    f'--env={config.game}',
    f'--max_actor_steps={config.max_actor_steps}',
    f'--seed={config.seed}',
    f'--workdir={config.folder}',
    *config.more_flags,
  ]
  code = 0 if config.draw_only else launch(config.script, flags)
  if code == 0:
    workdir = str(config.folder)
    played = workdir_lib.read_identity(workdir)['run']['env']
    checks.require(
      played == config.game,
      f'workdir={workdir!r} contains a run on {played!r}, not on '
      f'game={config.game!r}. Pass the workdir of a run on this game, or '
      'remove --workdir.',
    )
    show(config)
  return code


def show(config: TrainConfig) -> None:
  """Draws `curve.png` in the directory of the run and prints the table.

  Raises:
    ValueError: if the run has not been evaluated yet.
  """
  game, folder = config.game, config.folder
  levels = human_normalized_scores.reference_scores(game)
  evaluation = logs.read_columns(str(folder), 'evaluator')
  checks.require(
    bool(evaluation),
    f'workdir={str(folder)!r} contains no evaluation yet. Rerun without '
    '--draw_only to continue training.',
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
  actor_steps = int(
    max(steps.max(initial=0) for steps, _ in (training, scores))
  )
  frames = actor_steps * _FRAMES_PER_ACTOR_STEP
  seconds = datetime.timedelta(seconds=round(_seconds(folder)))
  print(
    f'\n{game}, {actor_steps:,} actor steps, {frames:,} frames\n\n'
    f'{table(game, scores)}\n\n'
    f'Wall time:       {seconds}, including interruptions\n'
    f'Learning curve:  {folder / "curve.png"}'
  )


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


def _seconds(folder: pathlib.Path) -> float:
  """Returns the time from the first file of a run to its latest log entry."""
  latest = max(
    path.stat().st_mtime for path in (folder / 'logs').glob('*/logs.csv')
  )
  return latest - (folder / 'config.json').stat().st_mtime


if __name__ == '__main__':
  command_line.run(TrainConfig, functools.partial(run, show=show))
