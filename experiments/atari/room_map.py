"""Draws the rooms of level 1 and the number of visits to each position.

The map ends one floor below the lowest visited room, so that the rooms are
drawn large enough to show details.
"""

from collections.abc import Iterable, Mapping

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from bt_acme.evaluation import plots
from experiments.atari import montezuma

_UNKNOWN = (70, 70, 70)  # Fill color of rooms that were never visited.
_FRAME = (200, 200, 200)
_FONT_SIZE = 36
_WIDTH = 8.0  # Width of the map of one policy, in inches.
_TITLES = 0.7  # Height of the titles above the map, in inches.


def draw(path: str, visits: Mapping[str, montezuma.Visits]) -> None:
  """Draws a map of all rooms for each policy.

  Args:
    path: the path of the PNG.
    visits: the visits of each policy by its label.
  """
  pictures: dict[int, np.ndarray] = {}
  for visited in visits.values():
    pictures.update(visited.pictures)
  floors = floors_shown(pictures)
  canvas = background(pictures, floors)
  height, width, _ = canvas.shape
  shown = {
    f'{label}: rooms {v.rooms}, positions {v.positions}': counts(v, floors)
    for label, v in visits.items()
  }
  plots.heat_maps(
    path,
    shown,
    dict.fromkeys(shown, canvas),
    title="Montezuma's Revenge, level 1: where each policy goes",
    panel_size=(_WIDTH, _WIDTH * height / width + _TITLES),
    cropped=False,
  )


def floors_shown(rooms: Iterable[int]) -> int:
  """Returns the number of floors on the map if these rooms were visited."""
  places = montezuma.pyramid()
  lowest = max(places[room][0] for room in rooms if room in places)
  return min(lowest + 2, len(montezuma.FLOORS))


def counts(visits: montezuma.Visits, floors: int) -> np.ndarray:
  """Combines the counts of all rooms in one grid.

  Args:
    visits: the visits of a policy.
    floors: the number of floors of the grid, from top to bottom.

  Returns:
    int64 [floors * ROWS, rooms of the lowest floor * COLUMNS].
  """
  columns = len(montezuma.FLOORS[floors - 1]) * montezuma.COLUMNS
  grid = np.zeros((floors * montezuma.ROWS, columns), np.int64)
  places = montezuma.pyramid(floors)
  for (room, row, column), count in visits.counts.items():
    if room in places:
      floor, left = places[room]
      row += floor * montezuma.ROWS
      grid[row, left * montezuma.COLUMNS + column] += count
  return grid


def background(pictures: Mapping[int, np.ndarray], floors: int) -> np.ndarray:
  """Combines the images of all rooms in one image.

  Args:
    pictures: uint8 RGB [ROOM_HEIGHT, ROOM_WIDTH, 3] by room. Rooms without an
      image show only their number.
    floors: the number of floors of the map, from top to bottom.

  Returns:
    uint8 RGB, with a square of CELL pixels for each element of `counts`.
  """
  height, width = montezuma.ROOM_HEIGHT, montezuma.ROOM_WIDTH
  canvas = Image.new(
    'RGB',
    (len(montezuma.FLOORS[floors - 1]) * width, floors * height),
    'white',
  )
  pen = ImageDraw.Draw(canvas)
  for room, (floor, column) in montezuma.pyramid(floors).items():
    left, top = column * width, floor * height
    frame = (left, top, left + width - 1, top + height - 1)
    if room in pictures:
      canvas.paste(Image.fromarray(pictures[room]), (left, top))
      pen.rectangle(frame, outline=_FRAME, width=2)
    else:
      pen.rectangle(frame, fill=_UNKNOWN, outline=_FRAME, width=2)
      pen.text(
        (left + width // 2, top + height // 2),
        str(room),
        fill=_FRAME,
        font=ImageFont.load_default(_FONT_SIZE),
        anchor='mm',
      )
  return np.asarray(canvas)
