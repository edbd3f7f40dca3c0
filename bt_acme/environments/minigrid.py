"""MiniGrid as `dm_env`: small sparse-reward tasks that need no accelerator.

The agent observes the part of the grid in front of it, as an image of object,
color and state indices. Position, direction and mission are hidden; evaluation
may read the position (`agent_cell`).

A name is a MiniGrid ID, optionally followed by these modifiers in this order:

  :fixed, :fixed=3   every episode has layout 0, or layout 3
  :goal=3            with a fixed layout of FourRooms, goal 3 instead of its own
  :no_goal           goals are removed: exploration without a task
  :open_goal         goals can be seen and entered, but do not end the episode
  :door=0.3          reward 0.3 for the first opening of each door per episode
  :new_cell=-0.1     reward -0.1 for each cell that is new in the episode
"""

import functools
from typing import Any, SupportsFloat

import numpy as np
from gymnasium.envs import registration
from minigrid.core import world_object

from bt_acme.environments import gymnasium, minigrid_view, naming

Cell = tuple[int, int]  # Column and row.

MODIFIERS = (
  naming.Modifier('fixed=3', naming.number, default=0),
  naming.Modifier('goal=3', naming.number),
  naming.Modifier('no_goal', default=True),
  naming.Modifier('open_goal', default=True),
  naming.Modifier('door=0.3', naming.reward),
  naming.Modifier('new_cell=-0.1', naming.reward),
)

_PREFIX = 'MiniGrid-'
# These environments need a map generator that is not installed.
_GENERATED_PREFIX = 'MiniGrid-WFC-'


def names() -> tuple[str, ...]:
  """Returns all MiniGrid IDs, without modifiers."""
  found = (x for x in sorted(registration.registry) if x.startswith(_PREFIX))
  return tuple(x for x in found if not x.startswith(_GENERATED_PREFIX))


def find(name: str) -> naming.Maker | None:
  """Returns the maker of a MiniGrid environment; None for an unknown ID."""
  minigrid_id = name.partition(':')[0]
  if minigrid_id not in names():
    return None
  options = naming.parse(name, MODIFIERS)
  layout_seed = options.pop('fixed', None)
  return naming.Maker(
    functools.partial(MiniGrid, minigrid_id, layout_seed=layout_seed, **options)
  )


class MiniGrid(gymnasium.Gymnasium):
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
    layout_seed: int | None = None,
    goal: int | None = None,
    no_goal: bool = False,
    open_goal: bool = False,
    door: float | None = None,
    new_cell: float | None = None,
  ) -> None:
    """Initializes the environment.

    Args:
      name: one of `names()`.
      seed: the seed of the random layouts.
      layout_seed: the seed of a single layout for all episodes; `seed` is then
        ignored. None for a new layout in each episode.
      goal: the number of another place for the goal of a FourRooms layout, with
        the same walls and the same start; None for the layout's own goal.
      no_goal: whether to remove goals, so that no episode ends at one. An
        exploring agent that encounters goals learns to avoid them, because
        reaching a goal ends the episode and with it the exploration.
      open_goal: whether goals can be seen and entered without a reward and
        without ending the episode. An agent that has never seen a goal would
        walk around it, as around any unknown object.
      door: the reward for the first opening of each door in an episode.
      new_cell: the reward for each cell that is new in an episode.

    Raises:
      ValueError: if `goal` is set without `layout_seed` or for an environment
        other than FourRooms, if `no_goal` or `open_goal` is set and the
        environment has no goal, if both are set, or if `door` is set for an
        environment without doors.
    """
    self._name = name
    super().__init__(
      _create(name), seed=seed if layout_seed is None else layout_seed
    )
    self._as_action = int
    self._later_seed = layout_seed
    self._goal = goal
    self._no_goal, self._open_goal = no_goal, open_goal
    self._door_bonus = np.float32(door or 0)
    self._cell_bonus = np.float32(new_cell or 0)
    # The indices of the doors that were opened, and the visited cells.
    self._opened: set[int] = set()
    self._visited: set[Cell] = set()
    if goal is not None and (layout_seed is None or 'FourRooms' not in name):
      raise ValueError(
        f"{name}: the modifier 'goal={goal}' needs a fixed layout of "
        f"FourRooms, such as 'MiniGrid-FourRooms-v0:fixed=5:goal={goal}'."
      )
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
      self._require(world_object.Goal, 'no_goal')
    if open_goal:
      self._require(world_object.Goal, 'open_goal')
    if door is not None:
      self._require(world_object.Door, 'door')

  def _require(self, kind: type, modifier: str) -> None:
    """Raises ValueError if the first layout has no object of that kind."""
    self._env.reset(seed=self._seed)
    if not self._cells_with(kind):
      raise ValueError(
        f'{self._name} has no {kind.__name__.lower()}. Remove the modifier '
        f'{modifier!r}.'
      )

  def _cells_with(self, kind: type) -> list[int]:
    """Returns the indices of the cells with an object of that kind."""
    cells = enumerate(self._env.grid.grid)
    return [i for i, cell in cells if isinstance(cell, kind)]

  def _reset(self, seed: int | None) -> np.ndarray:
    """Starts an episode, without its goals if so configured."""
    super()._reset(seed)
    cells = self._env.grid.grid
    if self._goal is not None:
      self._move_goal(self._goal)
    if self._no_goal or self._open_goal:
      for i in self._cells_with(world_object.Goal):
        cells[i] = None if self._no_goal else _OpenGoal()
    self._visited = {self.agent_cell()}
    doors = self._cells_with(world_object.Door)
    self._opened = {i for i in doors if cells[i].is_open}
    return self._env.gen_obs()

  def _move_goal(self, number: int) -> None:
    """Moves the goal to a cell that depends on its number and the layout."""
    grid = self._env.grid
    (own,) = self._cells_with(world_object.Goal)
    column, row = self.agent_cell()
    agent = row * grid.width + column
    cells = [
      i for i, cell in enumerate(grid.grid) if cell is None and i != agent
    ]
    # Different numbers have different cells, as far as there are enough.
    order = np.random.default_rng(self._later_seed).permutation(cells)
    moved = int(order[number % len(order)])
    grid.grid[moved], grid.grid[own] = grid.grid[own], None

  def _take(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool]:
    """Takes an action; adds the bonuses to the reward."""
    observation, own, terminated, truncated = super()._take(action)
    reward = np.float32(own)
    if self._door_bonus and self._has_opened_a_door():
      reward += self._door_bonus
    if self._cell_bonus and self.agent_cell() not in self._visited:
      self._visited.add(self.agent_cell())
      reward += self._cell_bonus
    return observation, reward, terminated, truncated

  def _has_opened_a_door(self) -> bool:
    """Returns whether the last step was the first to open some door.

    Only the door in front of the agent can have been opened.
    """
    x, y = self._env.front_pos
    i = int(y) * self._env.width + int(x)
    door = self._env.grid.grid[i]
    is_open = isinstance(door, world_object.Door) and door.is_open
    if not is_open or i in self._opened:
      return False
    self._opened.add(i)
    return True

  def agent_cell(self) -> Cell:
    """Returns the agent's column and row; for evaluation only."""
    x, y = self._env.agent_pos
    return int(x), int(y)

  def grid_size(self) -> tuple[int, int]:
    """Returns the number of columns and rows, including the outer walls."""
    return self._env.width, self._env.height

  def render_rgb(self, tile_size: int = 16) -> np.ndarray:
    """Draws the grid: uint8 [rows * tile_size, columns * tile_size, 3]."""
    return self._env.get_full_render(highlight=True, tile_size=tile_size)


class _OpenGoal(world_object.Floor):
  """A cell that looks like a goal and has no effect."""

  def encode(self) -> tuple[int, int, int]:
    return world_object.Goal().encode()

  def render(self, image: Any) -> Any:
    return world_object.Goal().render(image)


def _create(name: str) -> Any:
  """Creates a MiniGrid environment that only observes the image.

  gymnasium's own function would add slow checks.
  """
  spec: Any = registration.registry[name]
  create: Any = registration.load_env_creator(spec.entry_point)
  env = create(**spec.kwargs)
  env.observation_space = env.observation_space['image']
  env.gen_obs = lambda: minigrid_view.view(env)
  return env
