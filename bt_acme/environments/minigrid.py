"""MiniGrid as `dm_env`: small sparse-reward tasks that need no accelerator.

The agent sees what the field lets it see: the partial view in front of it, an
image of object, color and state indices. Position, direction and mission stay
with the environment; evaluation may ask for the first (`agent_cell`).
"""

import functools
from typing import Any, List, Optional, Tuple

import dm_env
import numpy as np
from dm_env import specs
from gymnasium.envs import registration
from minigrid import minigrid_env  # Registers the environments as well.
from minigrid.core import world_object

_PREFIX = 'MiniGrid-'
# Their map generator needs packages that are not installed.
_GENERATED_PREFIX = 'MiniGrid-WFC-'

_FORWARD = (
  (1, 0),
  (0, 1),
  (-1, 0),
  (0, -1),
)  # (x, y) by the agent's direction.
_EMPTY = (1, 0, 0)  # Object, color and state of a cell with nothing in it.
_OUTSIDE = world_object.Wall()


def names() -> Tuple[str, ...]:
  """Names of the environments that `MiniGrid` takes."""
  return tuple(
    name
    for name in sorted(registration.registry)
    if name.startswith(_PREFIX) and not name.startswith(_GENERATED_PREFIX)
  )


class MiniGrid(dm_env.Environment):
  """One MiniGrid environment, a new layout in each episode.

  Game over has discount 0; at the time limit the discount stays 1, so that the
  last observation is bootstrapped from. The reward is MiniGrid's own,
  1 - 0.9 * steps / max_steps at the goal.
  """

  def __init__(
    self,
    name: str,
    *,
    seed: int,
    layout_seed: Optional[int] = None,
    no_goal: bool = False,
  ) -> None:
    """Makes the environment.

    Args:
      name: one of `names()`.
      seed: of the stream of layouts.
      layout_seed: if given, every episode has the layout of this seed and
        `seed` has no effect.
      no_goal: whether goals are left out, so that no episode ends at one. To
        explore such a world without rewards is no task turned upside down,
        where the goal takes all that was left to explore.

    Raises:
      ValueError: if there is no goal to leave out.
    """
    spec: Any = registration.registry[name]
    # Without gymnasium's wrappers: their checks cost time at every step.
    create: Any = registration.load_env_creator(spec.entry_point)
    self._env = create(**spec.kwargs)
    self._env.gen_obs = lambda: {'image': view(self._env)}
    self._next_seed: Optional[int] = (
      seed if layout_seed is None else layout_seed
    )
    self._fixed_layout = layout_seed is not None
    self._no_goal = no_goal
    self._reset_next = True
    if no_goal:
      self._env.reset(seed=layout_seed or seed)
      if not self._goals():
        raise ValueError(f'{name} has no goal cell that no_goal leaves out.')

  def reset(self) -> dm_env.TimeStep:
    observation, _ = self._env.reset(seed=self._next_seed)
    if self._no_goal:
      for i in self._goals():
        self._env.grid.grid[i] = None
      observation = self._env.gen_obs()
    if not self._fixed_layout:
      self._next_seed = None  # The environment's own stream goes on.
    self._reset_next = False
    return dm_env.restart(observation['image'])

  def step(self, action: int) -> dm_env.TimeStep:
    if self._reset_next:
      return self.reset()
    observation, reward, terminated, truncated, _ = self._env.step(int(action))
    self._reset_next = terminated or truncated
    step_type = (
      dm_env.StepType.LAST if self._reset_next else dm_env.StepType.MID
    )
    return dm_env.TimeStep(
      step_type=step_type,
      reward=np.float32(reward),
      discount=np.float32(not terminated),
      observation=observation['image'],
    )

  def _goals(self) -> List[int]:
    cells = enumerate(self._env.grid.grid)
    return [i for i, cell in cells if isinstance(cell, world_object.Goal)]

  def observation_spec(self) -> specs.BoundedArray:
    """The partial view, uint8 [x, y, (object, color, state)]."""
    size = self._env.agent_view_size
    return specs.BoundedArray(
      (size, size, 3), np.uint8, minimum=0, maximum=255, name='observation'
    )

  def action_spec(self) -> specs.DiscreteArray:
    return specs.DiscreteArray(
      int(self._env.action_space.n), dtype=np.int32, name='action'
    )

  def reward_spec(self) -> specs.Array:
    return specs.Array((), np.float32, name='reward')

  def discount_spec(self) -> specs.BoundedArray:
    return specs.BoundedArray(
      (), np.float32, minimum=0.0, maximum=1.0, name='discount'
    )

  def agent_cell(self) -> Tuple[int, int]:
    """Column and row of the agent: for evaluation, never for the agent."""
    x, y = self._env.agent_pos
    return int(x), int(y)

  def grid_size(self) -> Tuple[int, int]:
    """Columns and rows of the grid, its outer walls included."""
    return self._env.width, self._env.height

  def render_rgb(self, tile_size: int = 16) -> np.ndarray:
    """The whole grid, uint8 [rows * tile_size, columns * tile_size, 3]."""
    return self._env.get_full_render(highlight=True, tile_size=tile_size)

  def close(self) -> None:
    self._env.close()


def view(env: minigrid_env.MiniGridEnv) -> np.ndarray:
  """What the agent sees: the image of MiniGrid's `gen_obs`, many times faster.

  Row by row from the agent on, so that what lies behind walls costs nothing.

  Args:
    env: an environment after its reset.

  Returns:
    uint8 [V, V, 3] with V the view's size: indices of object, color and state;
    zeros where the agent cannot see. It stands at [V // 2, V - 1] and faces
    [V // 2, 0]; its own cell shows what it carries.
  """
  size = env.agent_view_size
  cells, width, height = env.grid.grid, env.grid.width, env.grid.height
  agent_x, agent_y = env.agent_pos
  forward_x, forward_y = _FORWARD[env.agent_dir]
  image = bytearray(3 * size * size)
  lit = 1 << size // 2
  for distance in range(size):
    # The row's leftmost cell; one cell to the right is (-forward_y, forward_x).
    x = agent_x + distance * forward_x + size // 2 * forward_y
    y = agent_y + distance * forward_y - size // 2 * forward_x
    row = []
    clear = 0
    for i in range(size):
      inside = 0 <= x < width and 0 <= y < height
      cell = cells[y * width + x] if inside else _OUTSIDE
      row.append(cell)
      if cell is None or env.see_through_walls or cell.see_behind():
        clear |= 1 << i
      x -= forward_y
      y += forward_x
    lit, lit_ahead = _spread(lit, clear, size)
    if distance == 0:
      row[size // 2] = env.carrying
    for i, cell in enumerate(row):
      if lit >> i & 1:
        start = 3 * (size * i + size - 1 - distance)
        image[start : start + 3] = _EMPTY if cell is None else cell.encode()
    if not lit_ahead:
      break
    lit = lit_ahead
  return np.frombuffer(image, np.uint8).reshape(size, size, 3)


@functools.lru_cache(maxsize=None)
def _spread(lit: int, clear: int, size: int) -> Tuple[int, int]:
  """Lets light run along one row of the view, and on to the row ahead.

  Args:
    lit: bits of the cells that the row behind lights.
    clear: bits of the cells that light passes.
    size: cells a row.

  Returns:
    Bits of the lit cells of this row, and of those that it lights ahead.
  """
  ahead = 0
  for cells, side in ((range(size - 1), 1), (range(size - 1, 0, -1), -1)):
    for i in cells:
      if lit & clear & 1 << i:
        lit |= 1 << i + side
        ahead |= 1 << i | 1 << i + side
  return lit, ahead
