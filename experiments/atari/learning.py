"""R2D2 learns a game, and its scores are drawn."""

import dataclasses
import pathlib
from typing import List

from bt_acme import environments
from bt_acme.cli import flags
from bt_acme.config import checks
from bt_acme.config import run as run_config
from bt_acme.evaluation import human_normalized_scores
from experiments import launching
from experiments.atari import runs, scores


@dataclasses.dataclass(frozen=True)
class LearnConfig:
  """R2D2 learns a game."""

  game: str = checks.setting('road_runner', 'The game, one of the 57.')
  max_actor_steps: int = checks.setting(
    250_000,
    'The run ends after this many actor steps, of 4 frames each.',
    above=0,
  )
  workdir: str = checks.setting(
    '', 'The folder of the run; without a name it is runs/atari/GAME.'
  )
  seed: int = checks.setting(
    0, 'The seed of the run.', minimum=0, maximum=run_config.LARGEST_SEED
  )
  draw_only: bool = checks.setting(
    False, 'The run in the folder is drawn as it is, and not trained.'
  )

  def __post_init__(self) -> None:
    checks.check(self)
    environments.validate(self.game)
    human_normalized_scores.reference_scores(self.game)

  @property
  def folder(self) -> pathlib.Path:
    """The folder of the run, absolute."""
    return pathlib.Path(self.workdir or f'runs/atari/{self.game}').absolute()


@dataclasses.dataclass(frozen=True)
class Settings:
  """All settings of the command."""

  learn: LearnConfig = LearnConfig()


def run(config: LearnConfig, *, launch: runs.Launch = launching.launch) -> int:
  """Trains, unless it is only to draw; then draws and prints the scores.

  Args:
    config: what to train and to draw.
    launch: runs a launch script with flags and returns its exit code.

  Returns:
    An exit code.
  """
  code = runs.train(config, 'run_r2d2.py', launch)
  if code == 0:
    scores.show(scores.read(config.folder, config.game))
  return code


def main(argv: List[str]) -> int:
  del argv
  return run(flags.from_flags(Settings).learn)
