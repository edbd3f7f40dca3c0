"""Small worlds that ask one thing of an agent, for `experiments.learning`."""

import collections
import functools
from typing import Any, Dict, Sequence, Set, Tuple

import dm_env
import numpy as np
from dm_env import specs
from gymnasium.envs import registration
from minigrid import minigrid_env
from minigrid.core import constants, mission, world_object
from minigrid.core import grid as grid_lib

from bt_acme import environments
from bt_acme.environments import minigrid

RECALL = 'Recall'
COSTLY = 'CostlyFourRooms'
_LABYRINTH_ID = 'MiniGrid-Labyrinth-v0'
# One of them, the same in all episodes: 31 cells, the goal 37 actions away.
LABYRINTH = f'{_LABYRINTH_ID}:fixed=1'

_SIZE = 7  # Observations are as large as MiniGrid's.


class Recall(dm_env.Environment):
  """Shows a sign, keeps the agent's hands busy, and then asks for the sign.

  There are two signs, and an action for each. After the sign come steps whose
  action must copy what they show, at random one or the other; a wrong copy
  costs 0.5. The last action is to name the first sign: 1 if it does, else -1.
  Without a memory no policy has a positive mean return: the action before,
  which agents see too, is a copy and can carry nothing. After bsuite's memory
  length (Osband et al. 2020, "Behaviour Suite for Reinforcement Learning").
  """

  def __init__(self, length: int = 6, *, seed: int):
    """Makes the world.

    Args:
      length: steps to copy, between the sign and the question.
      seed: of the signs.
    """
    self._length = length
    self._rng = np.random.default_rng(seed)
    self._wanted: Sequence[int] = ()
    self._step = 0

  def reset(self) -> dm_env.TimeStep:
    signs = self._rng.integers(2, size=1 + self._length).tolist()
    # At the sign itself no action is wrong.
    self._wanted = (*signs, signs[0])
    self._step = 0
    return dm_env.restart(self._observation())

  def step(self, action: int) -> dm_env.TimeStep:
    if self._step > self._length + 1:
      return self.reset()
    step, right = self._step, action == self._wanted[self._step]
    self._step += 1
    if step > self._length:
      return dm_env.termination(np.float32(1 if right else -1), self._blank())
    reward = np.float32(0 if right or step == 0 else -0.5)
    return dm_env.transition(reward, self._observation())

  def observation_spec(self) -> specs.BoundedArray:
    return specs.BoundedArray((_SIZE, _SIZE, 3), np.uint8, 0, 255)

  def action_spec(self) -> specs.DiscreteArray:
    return specs.DiscreteArray(2)

  def _blank(self) -> np.ndarray:
    return np.zeros([_SIZE, _SIZE, 3], np.uint8)

  def _observation(self) -> np.ndarray:
    observation = self._blank()
    if self._step > self._length:
      return observation  # The question.
    observation[:, :, self._wanted[self._step]] = 10
    if self._step == 0:
      observation[:, :, 2] = 10
    return observation


class CostlyFourRooms(minigrid.MiniGrid):
  """FourRooms with the goal near the start, where seeing the world costs.

  Each cell that the agent had not been on before in the episode costs 0.1, so
  that a policy that explores well does worse than one that stands still. The
  way to the goal is worth it: layout 1, five actions.
  """

  _COST = np.float32(0.1)

  def __init__(self, *, seed: int):
    super().__init__('MiniGrid-FourRooms-v0', seed=seed, layout_seed=1)
    self._visited: Set[Tuple[int, int]] = set()

  def reset(self) -> dm_env.TimeStep:
    timestep = super().reset()
    self._visited = {self.agent_cell()}
    return timestep

  def step(self, action: int) -> dm_env.TimeStep:
    timestep = super().step(action)
    if timestep.first() or self.agent_cell() in self._visited:
      return timestep
    self._visited.add(self.agent_cell())
    return timestep._replace(reward=timestep.reward - self._COST)


class Labyrinth(minigrid_env.MiniGridEnv):  # type: ignore[misc]
  """Corridors one cell wide, with the goal in the farthest dead end.

  A spanning tree of the cells with odd coordinates: one way leads to each cell.
  The floor is tiled in random colors, so that places look different in the
  partial view. A policy that dithers does not leave the start, one that repeats
  actions runs into walls.
  """

  def __init__(
    self, size: int = 9, max_steps: int = 200, **kwargs: Any
  ) -> None:
    """Makes the world.

    Args:
      size: of the grid, odd, outer walls included.
      max_steps: of an episode.
      **kwargs: for `minigrid_env.MiniGridEnv`.
    """
    super().__init__(
      mission_space=mission.MissionSpace(lambda: 'get to the goal'),
      grid_size=size,
      max_steps=max_steps,
      **kwargs,
    )

  def _gen_grid(self, width: int, height: int) -> None:
    self.grid = grid_lib.Grid(width, height)
    for x in range(width):
      self.grid.vert_wall(x, 0)
    way = [(1, 1)]
    self._dig(1, 1)
    while way:  # As far as it goes, then back to the last branch.
      x, y = way[-1]
      directions = [
        (dx, dy)
        for dx, dy in map(tuple, constants.DIR_TO_VEC)
        if 0 < x + 2 * dx < width - 1
        and 0 < y + 2 * dy < height - 1
        and not self._is_open(x + 2 * dx, y + 2 * dy)
      ]
      if not directions:
        way.pop()
        continue
      dx, dy = directions[self._rand_int(0, len(directions))]
      self._dig(x + dx, y + dy)
      self._dig(x + 2 * dx, y + 2 * dy)
      way.append((x + 2 * dx, y + 2 * dy))
    self.agent_pos, self.agent_dir = (1, 1), 0
    distances = self.distances()
    self.put_obj(
      world_object.Goal(), *max(distances, key=distances.__getitem__)
    )
    self.mission = 'get to the goal'

  def _dig(self, x: int, y: int) -> None:
    color = constants.COLOR_NAMES[self._rand_int(0, len(constants.COLOR_NAMES))]
    self.grid.set(x, y, world_object.Floor(color))

  def _is_open(self, x: int, y: int) -> bool:
    return not isinstance(self.grid.get(x, y), world_object.Wall)

  def distances(self) -> Dict[Tuple[int, int], int]:
    """Least number of actions from the start to each cell (x, y)."""
    start = (1, 1, 0)  # Column, row and direction.
    actions = {start: 0}
    queue = collections.deque([start])
    nearest: Dict[Tuple[int, int], int] = {}
    while queue:
      state = x, y, direction = queue.popleft()
      nearest.setdefault((x, y), actions[state])
      dx, dy = constants.DIR_TO_VEC[direction]
      ahead = (int(x + dx), int(y + dy), direction)
      turned = ((x, y, (direction + side) % 4) for side in (1, -1))
      for after in (*turned, *([ahead] if self._is_open(*ahead[:2]) else [])):
        if after not in actions:
          actions[after] = actions[state] + 1
          queue.append(after)
    return nearest


@functools.lru_cache(maxsize=None)  # Names are given once.
def register() -> None:
  """Gives the worlds their names in this process."""
  environments.register(RECALL, Recall)
  environments.register(COSTLY, CostlyFourRooms)
  registration.register(
    _LABYRINTH_ID, entry_point=f'{Labyrinth.__module__}:{Labyrinth.__name__}'
  )
