"""Counts the rooms and positions that a policy visits in Montezuma's Revenge.

The position of the player comes from the console's memory. The addresses come
from AtariARI (Anand et al. 2019, arXiv:1906.08226), and the pyramid of rooms
from Go-Explore (Ecoffet et al. 2019, arXiv:1901.10995). The mapping from memory
to screen positions was measured on the ROM of ale-py.
"""

import collections
import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bt_acme import behaviors, environments, evaluation
from bt_acme.acting import vector_actor

GAME = 'montezuma_revenge'

_ROOM, _X, _Y = 3, 42, 43  # Addresses; y increases upward.
# The column and row of the player's body on the screen if x and y are 0.
_COLUMN_OF_X, _ROW_OF_Y = 3, 318

# The part of the screen that shows the room, in pixels.
ROOM_TOP, ROOM_HEIGHT, ROOM_WIDTH = 46, 152, 160
CELL = 8  # Pixels of a cell's height and width.
ROWS, COLUMNS = ROOM_HEIGHT // CELL, ROOM_WIDTH // CELL

# The rooms of each floor of level 1, from top to bottom. The middle room of
# every floor is in the same column. The game starts in room 1.
FLOORS = (range(3), range(3, 8), range(8, 15), range(15, 24))


# A room, and the row and column of a cell in it, from the top and the left.
Position = tuple[int, int, int]


def position(ram: np.ndarray) -> Position:
  """Returns the position of the player.

  Args:
    ram: the console's memory, uint8 [128].
  """
  row = (_ROW_OF_Y - int(ram[_Y]) - ROOM_TOP) // CELL
  column = (int(ram[_X]) + _COLUMN_OF_X) // CELL
  return (
    int(ram[_ROOM]),
    min(max(row, 0), ROWS - 1),
    min(max(column, 0), COLUMNS - 1),
  )


def pyramid(num_floors: int = len(FLOORS)) -> Mapping[int, tuple[int, int]]:
  """Returns the floor and column of each room of level 1, counted from 0.

  Args:
    num_floors: the number of floors to include, from top to bottom. Columns
      count from the left end of the lowest included floor.
  """
  floors = FLOORS[:num_floors]
  return {
    room: (floor, (len(floors[-1]) - len(rooms)) // 2 + i)
    for floor, rooms in enumerate(floors)
    for i, room in enumerate(rooms)
  }


@dataclasses.dataclass
class Visits:
  """The visits of a policy.

  Attributes:
    visited: the distinct positions of each game that ended; of each game if
      none ended.
    counts: the number of actions taken at each position, in all games.
    pictures: the latest image of each visited room, uint8 RGB.
  """

  visited: list[set[Position]] = dataclasses.field(default_factory=list)
  counts: Counter[Position] = dataclasses.field(
    default_factory=collections.Counter
  )
  pictures: dict[int, np.ndarray] = dataclasses.field(default_factory=dict)

  @property
  def rooms(self) -> int:
    """The number of distinct rooms."""
    return len({position[0] for position in self.counts})

  @property
  def positions(self) -> int:
    """The number of distinct positions in all games together."""
    return len(self.counts)

  @property
  def positions_per_game(self) -> float:
    """The mean number of distinct positions in a game."""
    return float(np.mean([len(positions) for positions in self.visited]))

  def add(self, environment: Any, visited: set[Position]) -> None:
    """Records the state of an environment in which an action is taken.

    Args:
      environment: the game.
      visited: the positions of this game so far, to which its own is added.
    """
    here = room, _, _ = position(environment.ram())
    self.counts[here] += 1
    visited.add(here)
    screen = environment.render_rgb()  # uint8 [210, 160, 3].
    self.pictures[room] = screen[ROOM_TOP : ROOM_TOP + ROOM_HEIGHT]


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
    first_environment=evaluation.FIRST_ENVIRONMENT,
    evaluation=True,
  )
  actor.update_variables(behavior.variables)
  if behavior.statistics is not None:
    actor.restore_statistics(behavior.statistics)
  return actor


def play(
  player: Any, spec: Any, *, num_games: int, actor_steps: int, seed: int
) -> Visits:
  """Plays games and counts the visits of the player.

  A game that ends is followed by another one, so that all policies take the
  same number of actions.

  Args:
    player: a `VectorActor` for N games.
    spec: the `EnvironmentSpec` of the game.
    num_games: N, the number of games that are played in parallel.
    actor_steps: the number of actions taken in each of the N environments.
    seed: the seed of the games.
  """
  environment = environments.make_vector(
    spec.name,
    num_games,
    num_stacked=spec.num_stacked,
    seed=seed,
    first_environment=evaluation.FIRST_ENVIRONMENT,
    joint_emulator=False,
  )
  visits = Visits()
  visited: list[set[Position]] = [set() for _ in range(num_games)]
  left = np.full(num_games, actor_steps)
  step = environment.reset()
  while left.any():
    acting = (left > 0) & ~step.is_last
    for i in np.flatnonzero(acting):
      if step.is_first[i]:
        visited[i] = set()
      visits.add(environment.environments[i], visited[i])
    left -= acting
    step = environment.step(player.select_actions(step))
    player.observe(step)
    ended = np.flatnonzero(acting & step.is_last)
    visits.visited += [visited[i] for i in ended]
  environment.close()
  visits.visited = visits.visited or visited
  return visits
