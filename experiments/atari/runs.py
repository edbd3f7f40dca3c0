"""The runs of the launch scripts that the commands train with."""

import dataclasses
import pathlib
from typing import Callable, ClassVar, Sequence

from bt_acme import environments
from bt_acme.config import checks
from bt_acme.config import run as run_config
from bt_acme.runtime import workdir as workdir_lib

PRESET = 'atari_small'
FRAMES_PER_ACTOR_STEP = 4

Launch = Callable[[str, Sequence[str]], int]


@dataclasses.dataclass(frozen=True)
class TrainConfig:
  """A launched run on a game, which is drawn in the end."""

  game: str = checks.setting('road_runner', 'The game, one of the 57.')
  max_actor_steps: int = checks.setting(
    250_000,
    'The run ends after this many actor steps, of 4 frames each.',
    above=0,
  )
  workdir: str = checks.setting(
    '',
    'The folder of the run; without a name it is runs/atari/GAME, and '
    'GAME_ngu where NGU explores.',
  )
  seed: int = checks.setting(
    0,
    'The seed of the run and of games that are played after it.',
    minimum=0,
    maximum=run_config.LARGEST_SEED,
  )
  draw_only: bool = checks.setting(
    False, 'The run in the folder is drawn as it is, and not trained.'
  )

  script: ClassVar[str]  # The launch script.
  more_flags: ClassVar[Sequence[str]] = ()  # Of the script.
  suffix: ClassVar[str] = ''  # Of the folder that is meant without a name.

  def __post_init__(self) -> None:
    checks.check(self)
    environments.validate(self.game)

  @property
  def folder(self) -> pathlib.Path:
    """The folder of the run, absolute."""
    own = f'runs/atari/{self.game}{self.suffix}'
    return pathlib.Path(self.workdir or own).absolute()


def train(config: TrainConfig, launch: Launch) -> int:
  """Trains, unless it is only to draw.

  Args:
    config: the game, the folder and the budget of the run.
    launch: runs a launch script with flags and returns its exit code.

  Returns:
    An exit code.

  Raises:
    ValueError: if the folder is not that of a run on the game.
  """
  flags = [
    f'--preset={PRESET}',
    f'--env={config.game}',
    f'--max_actor_steps={config.max_actor_steps}',
    f'--seed={config.seed}',
    f'--workdir={config.folder}',
    *config.more_flags,
  ]
  code = 0 if config.draw_only else launch(config.script, flags)
  if code == 0:
    _check(config.folder, config.game)
  return code


def _check(folder: pathlib.Path, game: str) -> None:
  """Raises ValueError unless the folder is the workdir of a run on the game."""
  played = workdir_lib.read_identity(str(folder))['run']['env']
  checks.require(
    played == game,
    f'workdir={str(folder)!r} belongs to a run on {played!r}, not on '
    f'game={game!r}: name the folder of this game, or leave workdir out.',
  )
