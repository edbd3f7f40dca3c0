"""Trains and shows launched runs, for both commands."""

import dataclasses
import pathlib
from typing import Any, Callable, ClassVar, Sequence

from bt_acme import environments
from bt_acme.config import checks
from bt_acme.config import run as run_config
from bt_acme.evaluation import human_normalized_scores
from bt_acme.runtime import workdir as workdir_lib
from experiments import launching

PRESET = 'atari_small'
FRAMES_PER_ACTOR_STEP = 4


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
    f'--preset={PRESET}',
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
