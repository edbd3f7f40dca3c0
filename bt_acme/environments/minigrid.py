"""MiniGrid as `dm_env`: small sparse-reward tasks that need no accelerator.

The agent sees a part of the field, the view in front of it, as an image of
object, color and state indices. Position, direction and mission stay
with the environment; evaluation may ask for the position (`agent_cell`).

A name is MiniGrid's id, with these modifiers in this order:

  :fixed, :fixed=3   every episode has layout 0, or layout 3
  :no_goal           the goal's cell is empty: the world without its task
  :door=0.3          the first opening of each door in an episode pays 0.3
  :new_cell=-0.1     each cell that is new in an episode pays -0.1
"""

import functools
from typing import Any, List, Optional, Tuple

import dm_env
import numpy as np
from dm_env import specs
from gymnasium.envs import registration
from minigrid.core import world_object

from bt_acme.environments import (
  base,
  minigrid_bonuses,
  minigrid_view,
  naming,
  saving,
)

MODIFIERS = (
  naming.Modifier('fixed', 'fixed=3', naming.number, 0),
  naming.Modifier('no_goal', 'no_goal', naming.no_value, True),
  naming.Modifier('door', 'door=0.3', naming.reward),
  naming.Modifier('new_cell', 'new_cell=-0.1', naming.reward),
)

_PREFIX = 'MiniGrid-'
# Their map generator needs packages that are not installed.
_GENERATED_PREFIX = 'MiniGrid-WFC-'


def names() -> Tuple[str, ...]:
  """Returns MiniGrid's ids, without modifiers."""
  return tuple(
    name
    for name in sorted(registration.registry)
    if name.startswith(_PREFIX) and not name.startswith(_GENERATED_PREFIX)
  )


def find(name: str) -> Optional[naming.Maker]:
  """Finds an environment of `names`, with modifiers."""
  minigrid_id = name.partition(':')[0]
  if minigrid_id not in names():
    return None
  values = naming.parse(name, MODIFIERS)
  return naming.Maker(
    functools.partial(
      MiniGrid,
      minigrid_id,
      layout_seed=values.get('fixed'),
      no_goal=values.get('no_goal', False),
      door=values.get('door'),
      new_cell=values.get('new_cell'),
    )
  )


class MiniGrid(saving.Replayed):
  """One MiniGrid environment, with a new layout in each episode.

  Game over has discount 0; at the time limit the discount stays 1, so that the
  last observation is bootstrapped from. The reward is MiniGrid's own,
  1 - 0.9 * steps / max_steps at the goal, unless bonuses are asked for.
  """

  def __init__(
    self,
    name: str,
    *,
    seed: int,
    layout_seed: Optional[int] = None,
    no_goal: bool = False,
    door: Optional[float] = None,
    new_cell: Optional[float] = None,
  ) -> None:
    """Makes the environment.

    Args:
      name: one of `names()`.
      seed: the seed of the stream of layouts.
      layout_seed: if given, every episode has the layout of this seed, and
        `seed` has no effect.
      no_goal: whether goals are left out, so that no episode ends at one. An
        explorer that meets goals learns to avoid them, because a goal ends the
        episode and takes all that was left to explore.
      door: what the first opening of each door in an episode pays.
      new_cell: what each cell that is new in an episode pays.

    Raises:
      ValueError: if the environment has no goal to leave out, or no door.
    """
    self._name = name
    super().__init__(
      _create(name), seed if layout_seed is None else layout_seed
    )
    self._fixed_layout = layout_seed is not None
    self._no_goal = no_goal
    self._bonuses: List[minigrid_bonuses.Bonus] = []
    if door is not None:
      self._bonuses.append(minigrid_bonuses.OpenedDoor(door))
    if new_cell is not None:
      self._bonuses.append(minigrid_bonuses.NewCell(new_cell))
    if no_goal:
      self._require(world_object.Goal, 'goal cell that no_goal leaves out')
    if door is not None:
      self._require(world_object.Door, 'door whose opening could pay')

  def _require(self, kind: type, what: str) -> None:
    """Raises ValueError if the first layout has no object of that kind."""
    self._env.reset(seed=self._seed)
    if not self._cells_with(kind):
      raise ValueError(f'{self._name} has no {what}.')

  def _cells_with(self, kind: type) -> List[int]:
    """Returns indices of the cells that hold an object of that kind."""
    cells = enumerate(self._env.grid.grid)
    return [i for i, cell in cells if isinstance(cell, kind)]

  def reset(self) -> dm_env.TimeStep:
    observation = self._start_episode()
    if self._no_goal:
      for i in self._cells_with(world_object.Goal):
        self._env.grid.grid[i] = None
      observation = self._env.gen_obs()
    if not self._fixed_layout:
      self._seed = None  # The environment's own stream goes on.
    for bonus in self._bonuses:
      bonus.reset(self._env)
    return dm_env.restart(observation['image'])

  def step(self, action: int) -> dm_env.TimeStep:
    if self._reset_next:
      return self.reset()
    observation, paid, terminated, truncated = self._take(int(action))
    reward = np.float32(paid)
    for bonus in self._bonuses:
      reward += bonus.reward(self._env)
    return base.time_step(
      observation['image'], reward, terminated=terminated, truncated=truncated
    )

  def observation_spec(self) -> specs.BoundedArray:
    """Describes the partial view, uint8 [x, y, (object, color, state)]."""
    size = self._env.agent_view_size
    return specs.BoundedArray(
      (size, size, 3), np.uint8, minimum=0, maximum=255, name='observation'
    )

  def action_spec(self) -> specs.DiscreteArray:
    return specs.DiscreteArray(
      int(self._env.action_space.n), dtype=np.int32, name='action'
    )

  def agent_cell(self) -> Tuple[int, int]:
    """Returns the agent's column and row, for evaluation only."""
    x, y = self._env.agent_pos
    return int(x), int(y)

  def grid_size(self) -> Tuple[int, int]:
    """Returns columns and rows of the grid, including its outer walls."""
    return self._env.width, self._env.height

  def render_rgb(self, tile_size: int = 16) -> np.ndarray:
    """Draws the grid, uint8 [rows * tile_size, columns * tile_size, 3]."""
    return self._env.get_full_render(highlight=True, tile_size=tile_size)


def _create(name: str) -> Any:
  """Makes MiniGrid's own environment, without gymnasium's slow checks."""
  spec: Any = registration.registry[name]
  create: Any = registration.load_env_creator(spec.entry_point)
  env = create(**spec.kwargs)
  env.gen_obs = lambda: {'image': minigrid_view.view(env)}
  return env
