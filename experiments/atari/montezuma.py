"""Locates the player of Montezuma's Revenge from the console's memory.

The addresses come from AtariARI (Anand et al. 2019, arXiv:1906.08226), and the
pyramid of rooms from Go-Explore (Ecoffet et al. 2019, arXiv:1901.10995). The
mapping from memory to screen positions was measured on the ROM of ale-py.
"""

from typing import Mapping, NamedTuple

import numpy as np

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


class Position(NamedTuple):
  """A cell of a room; row 0 is at the top and column 0 at the left."""

  room: int
  row: int
  column: int


def position(ram: np.ndarray) -> Position:
  """Returns the position of the player.

  Args:
    ram: the console's memory, uint8 [128].
  """
  row = (_ROW_OF_Y - int(ram[_Y]) - ROOM_TOP) // CELL
  column = (int(ram[_X]) + _COLUMN_OF_X) // CELL
  return Position(
    int(ram[_ROOM]),
    min(max(row, 0), ROWS - 1),
    min(max(column, 0), COLUMNS - 1),
  )


def room_picture(screen: np.ndarray) -> np.ndarray:
  """Crops the room from the screen.

  Args:
    screen: uint8 RGB [210, 160, 3].
  """
  return screen[ROOM_TOP : ROOM_TOP + ROOM_HEIGHT]


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
