"""Images of an episode that show who is in control.

The color of the border and caption shows who selects the next action: the agent
itself, the behavior through the extra action, or the behavior in a flight. With
several behaviors, each has its own color, and the caption names it. In
environments with cells, visited cells are marked in the color of the last
controller there.
"""

from collections.abc import Sequence
from typing import Any

import dm_env
import numpy as np
from PIL import Image, ImageDraw, ImageFont

from bt_acme.core import types

Color = tuple[int, int, int]
Controller = tuple[str, Color]  # Its name, and its color in the images.

_BORDER = 8  # Pixels.
_CAPTION = 28  # Pixels between the border and the image.
_FONT_SIZE = 18
_INK: Color = (0, 0, 0)
_END_COLOR: Color = (230, 230, 230)
_MARK_SHARE = 0.4  # Side length of a mark relative to its cell.


# From the palette of Okabe and Ito, which color-blind people can distinguish.
CONTROLLERS: dict[int, Controller] = {
  types.OWN: ('agent', (86, 180, 233)),
  types.EXTRA: ('extra action', (230, 159, 0)),
  types.FLIGHT: ('flight', (204, 121, 167)),
}
# The colors of several behaviors, from the same palette.
_BEHAVIOR_COLORS: Sequence[Color] = (
  *((230, 159, 0), (204, 121, 167), (0, 158, 115)),
  *((240, 228, 66), (213, 94, 0), (0, 114, 178)),
)


def controller_of(
  source: int, behavior: int, names: Sequence[str]
) -> Controller:
  """Returns the controller of a step.

  Args:
    source: who selects the action: OWN, EXTRA or FLIGHT.
    behavior: the behavior, unless the source is OWN.
    names: the names of all behaviors.
  """
  name, color = CONTROLLERS[source]
  if source == types.OWN or len(names) < 2:
    return name, color
  color = _BEHAVIOR_COLORS[behavior % len(_BEHAVIOR_COLORS)]
  return f'{name}: {names[behavior]}', color


class ControlView:
  """Draws the frames of one episode of one environment."""

  def __init__(
    self,
    environment: dm_env.Environment,
    *,
    scale: int = 1,
    shows_control: bool = True,
    behaviors: Sequence[str] = (),
  ):
    """Initializes the view of a new episode.

    Args:
      environment: the environment to draw.
      scale: the factor by which the image is enlarged.
      shows_control: whether to add border, caption and marks, which are
        meaningless for an agent without behavior transfer.
      behaviors: the names of the agent's behaviors.
    """
    self._environment: Any = environment  # Only some environments have cells.
    self._scale = scale
    self._shows_control = shows_control
    self._has_cells = shows_control and hasattr(environment, 'agent_cell')
    self._behaviors = behaviors
    self._marks: dict[tuple[int, int], Color] = {}
    # The type and shape of the first picture, which all others must have.
    self._kind: Any = None

  def frame(self, source: int, behavior: int = 0) -> np.ndarray:
    """Draws the environment before an action.

    Args:
      source: who selects the action: OWN, EXTRA or FLIGHT.
      behavior: the behavior, unless the source is OWN.

    Returns:
      uint8 RGB [height, width, 3].
    """
    name, color = controller_of(source, behavior, self._behaviors)
    picture = self._picture()
    if self._has_cells:
      self._marks[self._environment.agent_cell()] = color
    return self._framed(picture, name, color)

  def last_frame(self, caption: str) -> np.ndarray:
    """Draws the environment at the end of the episode."""
    return self._framed(self._picture(), caption, _END_COLOR)

  def _framed(
    self, picture: np.ndarray, caption: str, color: Color
  ) -> np.ndarray:
    """Adds a colored border with a caption, if control is shown."""
    if not self._shows_control:
      return picture
    height, width = picture.shape[:2]
    size = (width + 2 * _BORDER, height + 2 * _BORDER + _CAPTION)
    canvas = Image.new('RGB', size, color)
    canvas.paste(Image.fromarray(picture), (_BORDER, _BORDER + _CAPTION))
    # A name of a behavior may be wider than the picture.
    share = width / ImageFont.load_default(_FONT_SIZE).getlength(caption)
    font = ImageFont.load_default(_FONT_SIZE * min(share, 1))
    middle = canvas.width // 2, (_BORDER + _CAPTION) // 2
    draw = ImageDraw.Draw(canvas)
    draw.text(middle, caption, fill=_INK, font=font, anchor='mm')
    return np.asarray(canvas)

  def _picture(self) -> np.ndarray:
    """Renders the environment with its marked cells."""
    if not hasattr(self._environment, 'render_rgb'):
      raise ValueError(
        f'{type(self._environment).__name__} cannot be rendered. Choose '
        'another environment, such as MiniGrid, or add a method render_rgb() '
        'to your own that returns uint8 RGB [height, width, 3].'
      )
    picture = np.asarray(self._environment.render_rgb())
    self._kind = self._kind or (np.dtype(np.uint8), (*picture.shape[:2], 3))
    if (picture.dtype, picture.shape) != self._kind:
      raise ValueError(
        f'{type(self._environment).__name__} has rendered {picture.dtype} '
        f'{picture.shape}. Render uint8 RGB [height, width, 3], always of one '
        'size.'
      )
    picture = picture.repeat(self._scale, axis=0).repeat(self._scale, axis=1)
    if not self._has_cells:
      return picture
    columns, _ = self._environment.grid_size()
    side = picture.shape[1] // columns
    margin = round(side * (1 - _MARK_SHARE) / 2)
    middle = slice(margin, side - margin)
    here = self._environment.agent_cell()
    for (column, row), color in self._marks.items():
      if (column, row) != here:
        cell = picture[row * side :, column * side :]
        cell[middle, middle] = color
    return picture
