"""NGU explores a game without rewards, and the rooms it visits are drawn."""

import dataclasses
from typing import Dict, List

from bt_acme import behaviors
from bt_acme.cli import flags
from bt_acme.config import checks
from bt_acme.evaluation import tables
from experiments import launching
from experiments.atari import montezuma, room_map, runs
from experiments.atari import visits as visits_lib


@dataclasses.dataclass(frozen=True)
class ExploreConfig(runs.TrainConfig):
  """NGU explores a game without rewards."""

  game: str = checks.setting(
    montezuma.GAME, f'The game; only the rooms of {montezuma.GAME} are known.'
  )
  max_actor_steps: int = checks.setting(
    300_000,
    'Pre-training ends after this many actor steps, of 4 frames each.',
    above=0,
  )
  episodes: int = checks.setting(
    8, 'Each policy plays this many games at once.', above=0
  )
  episode_steps: int = checks.setting(
    1_500,
    'Each policy plays on for this many actor steps in each of them. A game '
    'that is over is followed by another one.',
    above=0,
  )

  script = 'run_ngu.py'
  # An evaluator plays for the rewards of a task, and here are none.
  more_flags = ('--num_evaluators=0',)
  suffix = '_ngu'

  def __post_init__(self) -> None:
    super().__post_init__()
    checks.require(
      self.game == montezuma.GAME,
      f'game={self.game!r} has no map of its rooms here: only '
      f'{montezuma.GAME!r} has one.',
    )


@dataclasses.dataclass(frozen=True)
class Settings:
  """All settings of the command."""

  explore: ExploreConfig = ExploreConfig()


def run(
  config: ExploreConfig, *, launch: runs.Launch = launching.launch
) -> int:
  """Pre-trains, unless it is only to draw; then plays, counts and draws.

  Args:
    config: what to train and how long to play.
    launch: runs a launch script with flags and returns its exit code.

  Returns:
    An exit code.
  """
  code = runs.train(config, launch)
  if code == 0:
    path = str(config.folder / 'behavior')
    _show(config, behaviors.Exported(path, setting='workdir'))
  return code


def _show(config: ExploreConfig, behavior: behaviors.Exported) -> None:
  """Plays with both policies, prints the table and draws `rooms.png`."""
  print(
    f'\n{config.game}: a random policy and the behavior of '
    f'{behavior.actor_steps:,} actor steps play, '
    f'{config.episodes} x {config.episode_steps:,} actor steps each',
    flush=True,
  )
  players: Dict[str, visits_lib.Player] = {
    'random': visits_lib.RandomPlayer(
      behavior.agent.spec.num_actions, config.seed
    ),
    'behavior': visits_lib.behavior_player(
      behavior, config.episodes, config.seed
    ),
  }
  visits = {
    label: visits_lib.play(
      player,
      num_games=config.episodes,
      actor_steps=config.episode_steps,
      seed=config.seed,
    )
    for label, player in players.items()
  }
  path = config.folder / 'rooms.png'
  room_map.draw(str(path), visits)
  print(f'\n{table(visits)}\n\nRooms:  {path}')


def table(visits: Dict[str, visits_lib.Visits]) -> str:
  """Compares where the policies have been."""
  return tables.table(
    ('policy', 'games', 'actor steps', 'rooms', 'positions'),
    [
      (label, v.games, f'{v.actor_steps:,}', v.rooms, v.positions)
      for label, v in visits.items()
    ],
  )


def main(argv: List[str]) -> int:
  del argv
  return run(flags.from_flags(Settings).explore)
