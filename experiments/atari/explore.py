"""Explores Montezuma's Revenge on two cores, without rewards.

  python -m experiments.atari.explore

This command pre-trains NGU with the launch script and `--preset=atari_small`,
and draws the rooms that its policy and a random policy visit. Ctrl-C stops the
run, and the same command resumes it. `--draw_only` skips training.
"""

import dataclasses
import functools

import numpy as np

from bt_acme import behaviors
from bt_acme.config import checks
from bt_acme.core import epsilon
from bt_acme.evaluation import tables
from experiments import command_line
from experiments.atari import learn, montezuma, room_map


@dataclasses.dataclass(frozen=True)
class ExploreConfig(learn.TrainConfig):
  """Settings of exploration with NGU.

  Attributes:
    game: Name of the game. Must be montezuma_revenge, which may be followed by
      the size of its frames, such as `:pixels=42`.
    max_actor_steps: Budget of pre-training in actor steps of 4 frames each.
    episodes: Number of games that each policy plays in parallel.
    episode_steps: Number of actor steps that each policy plays in each of these
      parallel games. A game that ends is followed by another one.
  """

  game: str = montezuma.GAME
  max_actor_steps: int = checks.setting(300_000, above=0)
  episodes: int = checks.setting(8, above=0)
  episode_steps: int = checks.setting(1_500, above=0)

  script = 'run_ngu.py'
  # Evaluators measure task rewards, which pre-training does not use.
  more_flags = ('--num_evaluators=0',)
  suffix = '_ngu'

  def check_game(self) -> None:
    checks.require(
      self.game.partition(':')[0] == montezuma.GAME,
      f'game={self.game!r} has no map of its rooms. Use {montezuma.GAME!r}.',
    )


def show(config: ExploreConfig) -> None:
  """Plays with both policies, prints the table and draws `rooms.png`."""
  folder = str(config.folder / 'behavior')
  behavior = behaviors.Exported(folder, setting='workdir')
  print(
    f'\nPlaying {config.game} with a random policy and the behavior '
    f'pre-trained for {behavior.actor_steps:,} actor steps: '
    f'{config.episodes} x {config.episode_steps:,} actor steps each',
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
      env=config.game,
      num_games=config.episodes,
      actor_steps=config.episode_steps,
      seed=config.seed,
    )
    for label, rates in epsilons.items()
  }
  path = config.folder / 'rooms.png'
  room_map.draw(str(path), visits)
  print(f'\n{table(visits)}\n\nRooms:  {path}')


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
  command_line.run(ExploreConfig, functools.partial(learn.run, show=show))
