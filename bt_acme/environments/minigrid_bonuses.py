"""Rewards on top of MiniGrid's own, for tasks that mislead an explorer."""

from typing import Protocol, Set, Tuple, Union

import numpy as np
from minigrid import minigrid_env
from minigrid.core import world_object


class Bonus(Protocol):
  """A reward that follows one environment through its episodes."""

  def reset(self, env: minigrid_env.MiniGridEnv) -> None:
    """Begins an episode, whose layout is in place."""

  def reward(self, env: minigrid_env.MiniGridEnv) -> np.float32:
    """Returns what the step that was just taken pays."""


class NewCell:
  """Pays for each cell that the agent had not been on before in the episode.

  A negative reward makes a policy that explores well do worse than a policy
  that stands still.
  """

  def __init__(self, reward: float):
    self._reward = np.float32(reward)
    self._visited: Set[Tuple[int, int]] = set()

  def reset(self, env: minigrid_env.MiniGridEnv) -> None:
    self._visited = {_cell(env.agent_pos)}

  def reward(self, env: minigrid_env.MiniGridEnv) -> np.float32:
    cell = _cell(env.agent_pos)
    if cell in self._visited:
      return np.float32(0)
    self._visited.add(cell)
    return self._reward


class OpenedDoor:
  """Pays for the first opening of each door in the episode."""

  def __init__(self, reward: float):
    self._reward = np.float32(reward)
    self._opened: Set[Tuple[int, int]] = set()

  def reset(self, env: minigrid_env.MiniGridEnv) -> None:
    grid = env.grid
    self._opened = {
      (i % grid.width, i // grid.width)
      for i, cell in enumerate(grid.grid)
      if isinstance(cell, world_object.Door) and cell.is_open
    }

  def reward(self, env: minigrid_env.MiniGridEnv) -> np.float32:
    # Only the door in front of the agent can have been opened.
    cell = _cell(env.front_pos)
    door = env.grid.get(*cell)
    if (
      not isinstance(door, world_object.Door)
      or not door.is_open
      or cell in self._opened
    ):
      return np.float32(0)
    self._opened.add(cell)
    return self._reward


def _cell(position: Union[np.ndarray, Tuple[int, int]]) -> Tuple[int, int]:
  x, y = position
  return int(x), int(y)
