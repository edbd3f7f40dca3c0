"""MiniGrid as `dm_env`: small sparse-reward tasks that need no accelerator.

The agent observes the part of the grid in front of it, as an image of object,
color and state indices. Position, direction and mission are hidden; evaluation
may read the position (`agent_cell`).

A name is a MiniGrid ID, optionally followed by these modifiers in this order:

  :fixed, :fixed=3   every episode has layout 0, or layout 3
  :no_goal           goals are removed: exploration without a task
  :open_goal         goals can be seen and entered, but do not end the episode
  :door=0.3          reward 0.3 for the first opening of each door per episode
  :new_cell=-0.1     reward -0.1 for each cell that is new in the episode
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
  naming.Modifier('open_goal', 'open_goal', naming.no_value, True),
  naming.Modifier('door', 'door=0.3', naming.reward),
  naming.Modifier('new_cell', 'new_cell=-0.1', naming.reward),
)

_PREFIX = 'MiniGrid-'
# These environments need a map generator that is not installed.
_GENERATED_PREFIX = 'MiniGrid-WFC-'


def names() -> Tuple[str, ...]:
  """Returns all MiniGrid IDs, without modifiers."""
  return tuple(
    name
    for name in sorted(registration.registry)
    if name.startswith(_PREFIX) and not name.startswith(_GENERATED_PREFIX)
  )


def find(name: str) -> Optional[naming.Maker]:
  """Returns the maker of a MiniGrid environment; None for an unknown ID."""
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
      open_goal=values.get('open_goal', False),
      door=values.get('door'),
      new_cell=values.get('new_cell'),
    )
  )


class MiniGrid(saving.Replayed):
  """One MiniGrid environment, with a new layout in each episode.

  The discount is 0 at the end of the task. It stays 1 at the time limit, so the
  learner bootstraps from the last observation. The reward is MiniGrid's, 1 -
  0.9 * steps / max_steps at the goal, plus bonuses if configured.
  """

  def __init__(
    self,
    name: str,
    *,
    seed: int,
    layout_seed: Optional[int] = None,
    no_goal: bool = False,
    open_goal: bool = False,
    door: Optional[float] = None,
    new_cell: Optional[float] = None,
  ) -> None:
    """Initializes the environment.

    Args:
      name: one of `names()`.
      seed: the seed of the random layouts.
      layout_seed: the seed of a single layout for all episodes; `seed` is then
        ignored. None for a new layout in each episode.
      no_goal: whether to remove goals, so that no episode ends at one. An
        exploring agent that encounters goals learns to avoid them, because
        reaching a goal ends the episode and with it the exploration.
      open_goal: whether goals can be seen and entered without a reward and
        without ending the episode. An agent that has never seen a goal would
        walk around it, as around any unknown object.
      door: the reward for the first opening of each door in an episode.
      new_cell: the reward for each cell that is new in an episode.

    Raises:
      ValueError: if `no_goal` or `open_goal` is set and the environment has no
        goal, if both are set, or if `door` is set and there is no door.
    """
    self._name = name
    super().__init__(
      _create(name), seed if layout_seed is None else layout_seed
    )
    self._fixed_layout = layout_seed is not None
    self._no_goal, self._open_goal = no_goal, open_goal
    self._bonuses: List[minigrid_bonuses.Bonus] = []
    if door is not None:
      self._bonuses.append(minigrid_bonuses.OpenedDoor(door))
    if new_cell is not None:
      self._bonuses.append(minigrid_bonuses.NewCell(new_cell))
    if no_goal and open_goal:
      raise ValueError(
        f'{name}: no_goal and open_goal exclude each other. Remove one of them.'
      )
    if open_goal and 'Dynamic-Obstacles' in name:
      raise ValueError(
        f'{name} treats everything but a goal as an obstacle, so a goal cannot '
        "be open. Use ':no_goal'."
      )
    if no_goal:
      self._require(world_object.Goal, 'goal', 'no_goal')
    if open_goal:
      self._require(world_object.Goal, 'goal', 'open_goal')
    if door is not None:
      self._require(world_object.Door, 'door', 'door')

  def _require(self, kind: type, what: str, modifier: str) -> None:
    """Raises ValueError if the first layout has no object of that kind."""
    self._env.reset(seed=self._seed)
    if not self._cells_with(kind):
      raise ValueError(
        f'{self._name} has no {what}. Remove the modifier {modifier!r}.'
      )

  def _cells_with(self, kind: type) -> List[int]:
    """Returns the indices of the cells with an object of that kind."""
    cells = enumerate(self._env.grid.grid)
    return [i for i, cell in cells if isinstance(cell, kind)]

  def reset(self) -> dm_env.TimeStep:
    """Starts an episode."""
    observation = self._start_episode()
    if self._no_goal or self._open_goal:
      for i in self._cells_with(world_object.Goal):
        self._env.grid.grid[i] = None if self._no_goal else _OpenGoal()
      observation = self._env.gen_obs()
    if not self._fixed_layout:
      self._seed = None  # Continue the environment's own random stream.
    for bonus in self._bonuses:
      bonus.reset(self._env)
    return dm_env.restart(observation['image'])

  def step(self, action: int) -> dm_env.TimeStep:
    """Takes an action; the step after the end of an episode starts the next."""
    if self._reset_next:
      return self.reset()
    observation, own, terminated, truncated = self._take(int(action))
    reward = np.float32(own)
    for bonus in self._bonuses:
      reward += bonus.reward(self._env)
    return base.time_step(
      observation['image'], reward, terminated=terminated, truncated=truncated
    )

  def observation_spec(self) -> specs.BoundedArray:
    """Describes observations: uint8 [x, y, (object, color, state)]."""
    size = self._env.agent_view_size
    return specs.BoundedArray(
      (size, size, 3), np.uint8, minimum=0, maximum=255, name='observation'
    )

  def action_spec(self) -> specs.DiscreteArray:
    """Describes MiniGrid's actions."""
    return specs.DiscreteArray(
      int(self._env.action_space.n), dtype=np.int32, name='action'
    )

  def agent_cell(self) -> Tuple[int, int]:
    """Returns the agent's column and row; for evaluation only."""
    x, y = self._env.agent_pos
    return int(x), int(y)

  def grid_size(self) -> Tuple[int, int]:
    """Returns the number of columns and rows, including the outer walls."""
    return self._env.width, self._env.height

  def render_rgb(self, tile_size: int = 16) -> np.ndarray:
    """Draws the grid: uint8 [rows * tile_size, columns * tile_size, 3]."""
    return self._env.get_full_render(highlight=True, tile_size=tile_size)


class _OpenGoal(world_object.Floor):
  """A cell that looks like a goal and has no effect."""

  def encode(self) -> Tuple[int, int, int]:
    return world_object.Goal().encode()

  def render(self, image: Any) -> Any:
    return world_object.Goal().render(image)


def _create(name: str) -> Any:
  """Creates a MiniGrid environment without gymnasium's slow checks."""
  spec: Any = registration.registry[name]
  create: Any = registration.load_env_creator(spec.entry_point)
  env = create(**spec.kwargs)
  env.gen_obs = lambda: {'image': minigrid_view.view(env)}
  return env
