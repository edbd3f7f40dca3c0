"""Where the player of Montezuma's Revenge is: the console's memory as a map.

The addresses are those of AtariARI (Anand et al. 2019, arXiv:1906.08226), and
the pyramid of rooms is that of Go-Explore (Ecoffet et al. 2019,
arXiv:1901.10995). How a position in memory lies on the screen was measured on
the ROM of ale-py.
"""

from typing import Mapping, NamedTuple, Tuple

import numpy as np

GAME = 'montezuma_revenge'

_ROOM, _X, _Y = 3, 42, 43  # Addresses; y grows upward.
# The player's body is on this column and row of the screen where x and y are 0.
_COLUMN_OF_X, _ROW_OF_Y = 3, 318

# The part of the screen that shows the room, in pixels.
ROOM_TOP, ROOM_HEIGHT, ROOM_WIDTH = 46, 152, 160
CELL = 8  # Pixels of a cell's height and width.
ROWS, COLUMNS = ROOM_HEIGHT // CELL, ROOM_WIDTH // CELL

# The rooms of each floor of level 1, from above; the middle one lies in the
# same column on all floors. The game starts in room 1.
FLOORS = (range(3), range(3, 8), range(8, 15), range(15, 24))


class Position(NamedTuple):
  """A cell of a room; row 0 is at the top, and column 0 at the left."""

  room: int
  row: int
  column: int


def position(ram: np.ndarray) -> Position:
  """Finds the player.

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
  """Cuts the room out of the screen.

  Args:
    screen: uint8 RGB [210, 160, 3].
  """
  return screen[ROOM_TOP : ROOM_TOP + ROOM_HEIGHT]


def pyramid(num_floors: int = len(FLOORS)) -> Mapping[int, Tuple[int, int]]:
  """Returns the floor and the column of each room of level 1, from 0.

  Args:
    num_floors: the number of floors from above, of which the lowest one is the
      widest; the rooms below are left out.
  """
  floors = FLOORS[:num_floors]
  return {
    room: (floor, (len(floors[-1]) - len(rooms)) // 2 + i)
    for floor, rooms in enumerate(floors)
    for i, room in enumerate(rooms)
  }
