"""Which rooms and positions a policy visits."""

import collections
import dataclasses
from typing import Any, Counter, Dict, Protocol

import numpy as np

from bt_acme import behaviors, environments
from bt_acme.acting import vector_actor
from bt_acme.environments import vector
from experiments.atari import montezuma

_FIRST_ENVIRONMENT = 1_000_000  # Seeds these games apart from training.
_EPSILON = 0.01  # Of a behavior.


@dataclasses.dataclass
class Visits:
  """Where a policy has been.

  Attributes:
    actor_steps: the number of actions taken.
    games: the number of games begun.
    counts: how many actions were taken at each position.
    pictures: each visited room as it was seen last, uint8 RGB.
  """

  actor_steps: int = 0
  games: int = 0
  counts: Counter[montezuma.Position] = dataclasses.field(
    default_factory=collections.Counter
  )
  pictures: Dict[int, np.ndarray] = dataclasses.field(default_factory=dict)

  @property
  def rooms(self) -> int:
    """The number of different rooms."""
    return len({position.room for position in self.counts})

  @property
  def positions(self) -> int:
    """The number of different positions."""
    return len(self.counts)

  def add(self, world: Any) -> None:
    """Takes in what an environment shows when an action is taken."""
    position = montezuma.position(world.ram())
    self.actor_steps += 1
    self.counts[position] += 1
    self.pictures[position.room] = montezuma.room_picture(world.screen_rgb())


class Player(Protocol):
  """Plays N games at once, as `vector_actor.VectorActor` does."""

  def select_actions(self, step: vector.VectorStep) -> np.ndarray:
    """Chooses an action for each environment, int [N]."""

  def observe(self, step: vector.VectorStep) -> Any:
    """Takes what the actions led to."""


class RandomPlayer:
  """Takes every action equally often."""

  def __init__(self, num_actions: int, seed: int):
    self._num_actions = num_actions
    self._rng = np.random.default_rng(seed)

  def select_actions(self, step: vector.VectorStep) -> np.ndarray:
    return self._rng.integers(self._num_actions, size=len(step.is_first))

  def observe(self, step: vector.VectorStep) -> None:
    del step


def behavior_player(
  behavior: behaviors.Exported, num_games: int, seed: int
) -> Player:
  """Makes the player of a behavior, with its intrinsic reward as an input."""
  actor = vector_actor.VectorActor(
    behavior.agent,
    epsilons=[_EPSILON] * num_games,
    seed=seed,
    first_environment=_FIRST_ENVIRONMENT,
    evaluation=True,
  )
  actor.update_variables(behavior.variables)
  if behavior.statistics is not None:
    actor.restore_statistics(behavior.statistics)
  return actor


def play(
  player: Player, *, num_games: int, actor_steps: int, seed: int
) -> Visits:
  """Plays and writes down where the player has been.

  A game that is over is followed by another one, so that all policies take the
  same number of actions.

  Args:
    player: chooses the actions.
    num_games: N, the number of games that are played at once.
    actor_steps: the number of actions taken in each of the N environments.
    seed: the seed of the games.
  """
  worlds: Any = [
    environments.make(
      montezuma.GAME, seed=environments.seed_of(seed, _FIRST_ENVIRONMENT + i)
    )
    for i in range(num_games)
  ]
  environment = vector.VectorEnvironment(worlds)
  visits = Visits()
  left = np.full(num_games, actor_steps)
  step = environment.reset()
  while left.any():
    acting = (left > 0) & ~step.is_last
    visits.games += int(np.sum(acting & step.is_first))
    for i in np.flatnonzero(acting):
      visits.add(worlds[i])
    left -= acting
    step = environment.step(player.select_actions(step))
    player.observe(step)
  environment.close()
  return visits
