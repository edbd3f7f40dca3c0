"""Tests images that show who is in control, and videos."""

import types as types_lib

import numpy as np
import pytest
from PIL import Image, ImageSequence

from bt_acme.core import types
from bt_acme.evaluation import control_view, video_writer


class _Grid:
  """A black grid of 3 rows and 4 columns."""

  def __init__(self):
    self.cell = (0, 0)

  def agent_cell(self):
    return self.cell

  def grid_size(self):
    return 4, 3

  def render_rgb(self):
    return np.zeros((30, 40, 3), np.uint8)


def _color(source):
  return list(control_view.CONTROLLERS[source][1])


def test_colors_of_border_and_marks():
  grid = _Grid()
  view = control_view.ControlView(grid, scale=2)
  first = view.frame(types.FLIGHT)
  assert list(first[0, 0]) == list(first[-1, -1]) == _color(types.FLIGHT)
  grid.cell = (2, 1)
  second = view.frame(types.OWN)
  assert list(second[0, 0]) == _color(types.OWN)
  picture = second[-8 - 60 : -8, 8 : 8 + 80]
  assert list(picture[10, 10]) == _color(types.FLIGHT)  # The previous cell.
  assert not picture[20:].any()
  last = view.last_frame('end')[-8 - 60 : -8, 8 : 8 + 80]
  assert not last[30, 50].any()  # The cell of the agent.
  assert first.shape == second.shape == (60 + 16 + 28, 80 + 16, 3)


def test_each_of_several_behaviors_has_a_color():
  names = [f'b{k}' for k in range(6)]
  view = control_view.ControlView(_Grid(), behaviors=names)
  colors = set()
  for source in (types.EXTRA, types.FLIGHT):
    for k in range(6):
      name, color = control_view.controller_of(source, k, names)
      assert name == f'{control_view.CONTROLLERS[source][0]}: b{k}'
      caption = view.frame(source, k)[:36]
      assert tuple(caption[0, 0]) == color
      assert not (caption[:, [0, -1]] - np.uint8(color)).any()  # It fits.
      colors.add((k, color))
  assert len(colors) == len({color for _, color in colors}) == 6
  assert list(view.frame(types.OWN, 3)[0, 0]) == _color(types.OWN)


def test_frames_without_control_equal_the_rendering():
  view = control_view.ControlView(_Grid(), shows_control=False)
  assert view.frame(types.OWN).shape == (30, 40, 3)
  assert view.last_frame('end').shape == (30, 40, 3)


@pytest.mark.parametrize('ending', ['gif', 'webm'])
def test_video_writer(tmp_path, ending):
  path = tmp_path / f'v.{ending}'
  writer = video_writer.VideoWriter(str(path), frames_per_second=15)
  grid = _Grid()
  view = control_view.ControlView(grid)
  for i, source in enumerate((types.OWN, types.EXTRA, types.FLIGHT)):
    grid.cell = (i, 0)
    writer.write(view.frame(source))
  assert not path.exists()
  writer.close()
  assert [p.name for p in tmp_path.iterdir()] == [path.name]
  assert writer.frames == 3
  if ending == 'gif':
    with Image.open(path) as image:
      frames = list(ImageSequence.all_frames(image))
    corners = [np.array(frame.convert('RGB'))[1, 1] for frame in frames]
    # Hundredths of a second; 200 milliseconds in all.
    assert [frame.info['duration'] for frame in frames] == [70, 60, 70]
    np.testing.assert_allclose(
      corners, [_color(source) for source in control_view.CONTROLLERS], atol=3
    )


def test_invalid_video_path(tmp_path):
  with pytest.raises(ValueError, match='video=.*v.avi.* must end in .webm or'):
    video_writer.VideoWriter(str(tmp_path / 'v.avi'), frames_per_second=15)


def test_an_environment_without_images_is_refused():
  with pytest.raises(ValueError, match='object cannot be rendered. Choose ano'):
    control_view.ControlView(object()).frame(types.OWN)


@pytest.mark.parametrize(
  'wrong, found',
  [
    (np.zeros([6, 8, 4], np.uint8), r'rendered uint8 \(6, 8, 4\)'),
    (np.zeros([6, 8], np.uint8), r'rendered uint8 \(6, 8\)'),
    (np.zeros([6, 8, 3]), r'rendered float64 \(6, 8, 3\)'),
    (None, r'rendered object \(\)'),
    (np.zeros([7, 8, 3], np.uint8), r'rendered uint8 \(7, 8, 3\)'),
  ],
)
def test_pictures_that_a_video_cannot_show_are_refused(wrong, found):
  environment = types_lib.SimpleNamespace(render_rgb=lambda: pictures.pop())
  view = control_view.ControlView(environment, shows_control=False)
  pictures = [wrong, np.zeros([6, 8, 3], np.uint8)]
  view.frame(types.OWN)
  with pytest.raises(ValueError, match=f'{found}. Render uint8 RGB'):
    view.frame(types.OWN)
  if np.shape(wrong) != (7, 8, 3):
    pictures.append(wrong)
    with pytest.raises(ValueError, match=found):
      control_view.ControlView(environment).frame(types.OWN)
