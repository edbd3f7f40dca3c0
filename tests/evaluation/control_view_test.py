"""Pictures in which one sees who is in control."""

import numpy as np
import pytest
from PIL import Image, ImageSequence

from bt_acme.core import types
from bt_acme.evaluation import control_view, video


class _World:
  """A grid of 3 rows and 4 columns, which shows nothing but black."""

  def __init__(self):
    self.cell = (0, 0)

  def agent_cell(self):
    return self.cell

  def grid_size(self):
    return 4, 3

  def render_rgb(self):
    return np.zeros((30, 40, 3), np.uint8)


def _color(source):
  return list(control_view.CONTROLLERS[source].color)


def test_the_border_tells_who_acts_and_marks_tell_who_acted():
  world = _World()
  view = control_view.ControlView(world, scale=2)
  first = view.frame(types.FLIGHT)
  assert list(first[0, 0]) == list(first[-1, -1]) == _color(types.FLIGHT)
  world.cell = (2, 1)
  second = view.frame(types.OWN)
  assert list(second[0, 0]) == _color(types.OWN)
  picture = second[-8 - 60 : -8, 8 : 8 + 80]
  assert list(picture[10, 10]) == _color(types.FLIGHT)  # The cell before.
  assert not picture[20:].any()
  last = view.last_frame('end')[-8 - 60 : -8, 8 : 8 + 80]
  assert not last[30, 50].any()  # The cell in which the agent stands.
  assert first.shape == second.shape == (60 + 16 + 28, 80 + 16, 3)


def test_without_control_to_show_a_frame_is_what_the_environment_shows():
  view = control_view.ControlView(_World(), shows_control=False)
  assert view.frame(types.OWN).shape == (30, 40, 3)
  assert view.last_frame('end').shape == (30, 40, 3)


@pytest.mark.parametrize('ending', ['gif', 'webm'])
def test_frames_make_a_video(tmp_path, ending):
  path = tmp_path / f'v.{ending}'
  writer = video.VideoWriter(str(path), frames_per_second=5)
  world = _World()
  view = control_view.ControlView(world)
  for i, source in enumerate((types.OWN, types.EXTRA, types.FLIGHT)):
    world.cell = (i, 0)
    writer.write(view.frame(source))
  assert not path.exists()
  writer.close()
  assert [p.name for p in tmp_path.iterdir()] == [path.name]
  assert writer.frames == 3
  if ending == 'gif':
    with Image.open(path) as image:
      corners = [
        np.array(frame.convert('RGB'))[1, 1]
        for frame in ImageSequence.Iterator(image)
      ]
    np.testing.assert_allclose(
      corners, [_color(source) for source in control_view.CONTROLLERS], atol=3
    )
