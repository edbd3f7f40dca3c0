"""Counts the rooms and positions that a policy visits."""

import collections
import dataclasses
from typing import Any, Counter, Sequence

import numpy as np

from bt_acme import behaviors, environments
from bt_acme.acting import vector_actor
from bt_acme.environments import vector
from experiments.atari import montezuma

_FIRST_ENVIRONMENT = 1_000_000  # Offset that separates the seeds from training.


@dataclasses.dataclass
class Visits:
  """The visits of a policy.

  Attributes:
    actor_steps: the number of actions taken.
    visited: the distinct positions of each game that was started.
    counts: the number of actions taken at each position.
    pictures: the latest image of each visited room, uint8 RGB.
  """

  actor_steps: int = 0
  visited: list[set[montezuma.Position]] = dataclasses.field(
    default_factory=list
  )
  counts: Counter[montezuma.Position] = dataclasses.field(
    default_factory=collections.Counter
  )
  pictures: dict[int, np.ndarray] = dataclasses.field(default_factory=dict)

  @property
  def rooms(self) -> int:
    """The number of distinct rooms."""
    return len({position.room for position in self.counts})  # english: ok

  @property
  def positions(self) -> int:
    """The number of distinct positions in all games together."""
    return len(self.counts)

  @property
  def positions_per_game(self) -> float:
    """The mean number of distinct positions in a game."""
    return float(np.mean([len(positions) for positions in self.visited]))

  def add(self, environment: Any, visited: set[montezuma.Position]) -> None:
    """Records the state of an environment in which an action is taken.

    Args:
      environment: the game.
      visited: the positions of this game so far, to which its own is added.
    """
    position = montezuma.position(environment.ram())
    self.actor_steps += 1
    self.counts[position] += 1
    visited.add(position)
    self.pictures[position.room] = montezuma.room_picture(
      environment.render_rgb()
    )


def player(
  behavior: behaviors.Exported, epsilons: Sequence[float], seed: int
) -> vector_actor.VectorActor:
  """Returns a player of a behavior, which includes its intrinsic reward.

  Args:
    behavior: the behavior.
    epsilons: the rate of random actions in each of the games that are played in
      parallel; 1 for a random policy.
    seed: the seed of the player.
  """
  actor = vector_actor.VectorActor(
    behavior.agent,
    epsilons=epsilons,
    seed=seed,
    first_environment=_FIRST_ENVIRONMENT,
    evaluation=True,
  )
  actor.update_variables(behavior.variables)
  if behavior.statistics is not None:
    actor.restore_statistics(behavior.statistics)
  return actor


def play(
  player: Any, *, env: str, num_games: int, actor_steps: int, seed: int
) -> Visits:
  """Plays games and counts the visits of the player.

  A game that ends is followed by another one, so that all policies take the
  same number of actions.

  Args:
    player: a `VectorActor` for N games.
    env: the name of the game, with the size of its frames.
    num_games: N, the number of games that are played in parallel.
    actor_steps: the number of actions taken in each of the N environments.
    seed: the seed of the games.
  """
  games: Any = [
    environments.make(
      env, seed=environments.seed_of(seed, _FIRST_ENVIRONMENT + i)
    )
    for i in range(num_games)
  ]
  environment = vector.VectorEnvironment(games)
  visits = Visits()
  visited: list[set[montezuma.Position]] = [set() for _ in games]
  left = np.full(num_games, actor_steps)
  step = environment.reset()
  while left.any():
    acting = (left > 0) & ~step.is_last
    for i in np.flatnonzero(acting):
      if step.is_first[i]:
        visited[i] = set()
        visits.visited.append(visited[i])
      visits.add(games[i], visited[i])
    left -= acting
    step = environment.step(player.select_actions(step))
    player.observe(step)
  environment.close()
  return visits
