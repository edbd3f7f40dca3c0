"""The runs of the launch scripts that the commands train with."""

import pathlib
from typing import Any, Callable, Sequence

from bt_acme.config import checks
from bt_acme.runtime import workdir as workdir_lib

PRESET = 'atari_small'
FRAMES_PER_ACTOR_STEP = 4

Launch = Callable[[str, Sequence[str]], int]


def train(config: Any, script: str, launch: Launch, *more: str) -> int:
  """Trains, unless it is only to draw.

  Args:
    config: the game, the folder and the budget of the run.
    script: its launch script.
    launch: runs a launch script with flags and returns its exit code.
    *more: further flags.

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
  ]
  code = 0 if config.draw_only else launch(script, [*flags, *more])
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
