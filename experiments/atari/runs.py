"""The runs of the launch scripts that the commands train with."""

import pathlib
from typing import List

from bt_acme.config import checks
from bt_acme.runtime import workdir as workdir_lib

PRESET = 'atari_small'
FRAMES_PER_ACTOR_STEP = 4


def flags(
  game: str, folder: pathlib.Path, *, max_actor_steps: int, seed: int
) -> List[str]:
  """Returns the flags of a launch script for a run on a game."""
  return [
    f'--preset={PRESET}',
    f'--env={game}',
    f'--max_actor_steps={max_actor_steps}',
    f'--seed={seed}',
    f'--workdir={folder}',
  ]


def check(folder: pathlib.Path, game: str) -> None:
  """Raises ValueError unless the folder is the workdir of a run on the game."""
  played = workdir_lib.read_identity(str(folder))['run']['env']
  checks.require(
    played == game,
    f'workdir={str(folder)!r} belongs to a run on {played!r}, not on '
    f'game={game!r}: name the folder of this game, or leave workdir out.',
  )
