"""MiniGrid's partial view, computed many times faster than in MiniGrid."""

import functools

import numpy as np
from minigrid import minigrid_env
from minigrid.core import world_object

# (x, y) of a step forward, by the agent's direction.
_FORWARD = ((1, 0), (0, 1), (-1, 0), (0, -1))
_EMPTY = (1, 0, 0)  # Object, color and state of an empty cell.
_OUTSIDE = world_object.Wall()


def view(env: minigrid_env.MiniGridEnv) -> np.ndarray:
  """Computes the agent's view, equal to the image of MiniGrid's `gen_obs`.

  Rows are computed from the agent outward, so cells behind walls cost no time.

  Args:
    env: an environment that has been reset.

  Returns:
    Indices of object, color and state, uint8 [V, V, 3], where V is the view
    size; zeros for cells that are not visible. The agent is at [V // 2, V - 1]
    and faces [V // 2, 0]; its own cell shows the object that it carries.
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


@functools.cache
def _spread(lit: int, clear: int, size: int) -> tuple[int, int]:
  """Propagates light along a row of the view and to the next row.

  Args:
    lit: bits of the cells of this row that the previous row lights.
    clear: bits of the transparent cells of this row.
    size: the number of cells in a row.

  Returns:
    Bits of the lit cells of this row, and bits of the cells of the next row
    that this row lights. The next row is farther from the agent.
  """
  ahead = 0
  for cells, side in ((range(size - 1), 1), (range(size - 1, 0, -1), -1)):
    for i in cells:
      if lit & clear & 1 << i:
        lit |= 1 << i + side
        ahead |= 1 << i | 1 << i + side
  return lit, ahead
