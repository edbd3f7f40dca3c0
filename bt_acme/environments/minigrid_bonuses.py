"""Bonus rewards of MiniGrid tasks, which can mislead an exploring agent."""

from typing import Protocol, Set, Tuple, Union

import numpy as np
from minigrid import minigrid_env
from minigrid.core import world_object


class Bonus(Protocol):
  """A bonus reward of one environment."""

  def reset(self, env: minigrid_env.MiniGridEnv) -> None:
    """Starts an episode; called after the layout was generated."""

  def reward(self, env: minigrid_env.MiniGridEnv) -> np.float32:
    """Returns the bonus for the last step."""


class NewCell:
  """A reward for each cell that the agent visits for the first time.

  Cells count per episode. With a negative reward, a policy that explores well
  scores worse than a policy that does not move.
  """

  def __init__(self, reward: float):
    self._reward = np.float32(reward)
    self._visited: Set[Tuple[int, int]] = set()

  def reset(self, env: minigrid_env.MiniGridEnv) -> None:
    """Marks the start cell as visited."""
    self._visited = {_cell(env.agent_pos)}

  def reward(self, env: minigrid_env.MiniGridEnv) -> np.float32:
    """Returns the bonus if the agent's cell is new, else 0."""
    cell = _cell(env.agent_pos)
    if cell in self._visited:
      return np.float32(0)
    self._visited.add(cell)
    return self._reward


class OpenedDoor:
  """A reward for the first opening of each door in an episode."""

  def __init__(self, reward: float):
    self._reward = np.float32(reward)
    self._opened: Set[Tuple[int, int]] = set()

  def reset(self, env: minigrid_env.MiniGridEnv) -> None:
    """Excludes the doors that are open at the start."""
    grid = env.grid
    self._opened = {
      (i % grid.width, i // grid.width)
      for i, cell in enumerate(grid.grid)
      if isinstance(cell, world_object.Door) and cell.is_open
    }

  def reward(self, env: minigrid_env.MiniGridEnv) -> np.float32:
    """Returns the bonus if a door was opened for the first time, else 0."""
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
