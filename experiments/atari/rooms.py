"""Draws the rooms of Montezuma's Revenge that a policy visits.

  python -m experiments.atari.rooms --workdir=runs/montezuma

`rooms.png` in the directory of the run shows where the behavior and a
random policy go. `README.md` in this directory describes such a run.
"""

import dataclasses
import pathlib

import numpy as np

from bt_acme import behaviors
from bt_acme.config import checks
from bt_acme.config import run as run_config
from bt_acme.core import epsilon
from bt_acme.evaluation import tables
from bt_acme.runtime import workdir as workdir_lib
from experiments import command_line
from experiments.atari import montezuma, room_map


@dataclasses.dataclass(frozen=True)
class RoomsConfig:
  """Settings of the command.

  Attributes:
    workdir: Directory of the run, whose environment is montezuma_revenge.
    episodes: Number of games that each policy plays in parallel.
    episode_steps: Number of actor steps that each policy plays in each of these
      parallel games. A game that ends is followed by another one.
    seed: Random seed of the games.
  """

  workdir: str = 'runs/montezuma'
  episodes: int = checks.setting(8, above=0)
  episode_steps: int = checks.setting(1_500, above=0)
  seed: int = checks.setting(0, minimum=0, maximum=run_config.LARGEST_SEED)

  def __post_init__(self) -> None:
    checks.check(self)


def run(config: RoomsConfig) -> int:
  """Plays with both policies, prints the table and draws `rooms.png`.

  Raises:
    ValueError: if there is no run on this game, or no behavior yet.
  """
  folder = pathlib.Path(config.workdir).absolute()
  env = workdir_lib.read_identity(str(folder))['run']['env']
  checks.require(
    env.partition(':')[0] == montezuma.GAME,
    f'workdir={config.workdir!r}: {env} has no map of its rooms. Pass a run on '
    f'{montezuma.GAME}.',
  )
  behavior = behaviors.Exported(str(folder / 'behavior'), setting='workdir')
  print(
    f'\nPlaying {env} with a random policy and the behavior pre-trained for '
    f'{behavior.actor_steps:,} actor steps: {config.episodes} x '
    f'{config.episode_steps:,} actor steps each',
    flush=True,
  )
  acting = behavior.agent.config.acting
  epsilons = {
    'random': np.ones(config.episodes),
    'behavior': np.full(config.episodes, acting.evaluation_epsilon),
    'behavior, with the epsilons of its training': epsilon.ladder(
      config.episodes, base=acting.epsilon_base, alpha=acting.epsilon_alpha
    ),
  }
  visits = {
    label: montezuma.play(
      montezuma.player(behavior, rates.tolist(), config.seed),
      behavior.agent.spec,
      num_games=config.episodes,
      actor_steps=config.episode_steps,
      seed=config.seed,
    )
    for label, rates in epsilons.items()
  }
  print(f'\n{table(visits)}', flush=True)
  room_map.draw(str(folder / 'rooms.png'), visits)
  print(f'\nRooms:  {folder / "rooms.png"}')
  return 0


def table(visits: dict[str, montezuma.Visits]) -> str:
  """Compares the visits of the policies in a table."""
  header = ('policy', 'games', 'actor steps', 'rooms', 'positions')
  return tables.table(
    (*header, 'positions in a game'),
    [
      (
        *(label, len(v.visited), f'{v.counts.total():,}', v.rooms, v.positions),
        f'{v.positions_per_game:.1f}',
      )
      for label, v in visits.items()
    ],
  )


if __name__ == '__main__':
  command_line.run(RoomsConfig, run)
