"""Counts the rooms and positions that a policy visits."""

import collections
import dataclasses
from typing import Any, Counter

import numpy as np

from bt_acme import behaviors, environments
from bt_acme.acting import vector_actor
from bt_acme.environments import vector
from experiments.atari import montezuma

_FIRST_ENVIRONMENT = 1_000_000  # Offset that separates the seeds from training.
_EPSILON = 0.01  # Rate of random actions of a behavior.


@dataclasses.dataclass
class Visits:
  """The visits of a policy.

  Attributes:
    actor_steps: the number of actions taken.
    games: the number of games started.
    counts: the number of actions taken at each position.
    pictures: the latest image of each visited room, uint8 RGB.
  """

  actor_steps: int = 0
  games: int = 0
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
    """The number of distinct positions."""
    return len(self.counts)

  def add(self, environment: Any) -> None:
    """Records the state of an environment in which an action is taken."""
    position = montezuma.position(environment.ram())
    self.actor_steps += 1
    self.counts[position] += 1
    self.pictures[position.room] = montezuma.room_picture(
      environment.screen_rgb()
    )


def player(
  behavior: behaviors.Exported,
  num_games: int,
  seed: int,
  epsilon: float = _EPSILON,
) -> vector_actor.VectorActor:
  """Returns a player of a behavior, which includes its intrinsic reward.

  Args:
    behavior: the behavior.
    num_games: the number of games that are played in parallel.
    seed: the seed of the player.
    epsilon: the rate of random actions; 1 for a random policy.
  """
  actor = vector_actor.VectorActor(
    behavior.agent,
    epsilons=[epsilon] * num_games,
    seed=seed,
    first_environment=_FIRST_ENVIRONMENT,
    evaluation=True,
  )
  actor.update_variables(behavior.variables)
  if behavior.statistics is not None:
    actor.restore_statistics(behavior.statistics)
  return actor


def play(player: Any, *, num_games: int, actor_steps: int, seed: int) -> Visits:
  """Plays games and counts the visits of the player.

  A game that ends is followed by another one, so that all policies take the
  same number of actions.

  Args:
    player: a `VectorActor` for N games.
    num_games: N, the number of games that are played in parallel.
    actor_steps: the number of actions taken in each of the N environments.
    seed: the seed of the games.
  """
  games: Any = [
    environments.make(
      montezuma.GAME, seed=environments.seed_of(seed, _FIRST_ENVIRONMENT + i)
    )
    for i in range(num_games)
  ]
  environment = vector.VectorEnvironment(games)
  visits = Visits()
  left = np.full(num_games, actor_steps)
  step = environment.reset()
  while left.any():
    acting = (left > 0) & ~step.is_last
    visits.games += int(np.sum(acting & step.is_first))
    for i in np.flatnonzero(acting):
      visits.add(games[i])
    left -= acting
    step = environment.step(player.select_actions(step))
    player.observe(step)
  environment.close()
  return visits
