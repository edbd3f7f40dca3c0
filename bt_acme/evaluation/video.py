"""Writes videos for browsers, as WebM files and GIFs."""

import pathlib
import zlib
from typing import Any, Callable, Dict, Iterator, List, Optional, Union

import cv2
import dm_env
import numpy as np
from PIL import Image

_GIF_COLORS = 128


def screen(environment: dm_env.Environment) -> np.ndarray:
  """Renders an environment.

  Returns:
    uint8 RGB [height, width, 3].

  Raises:
    ValueError: if the environment cannot be rendered.
  """
  for name in ('screen_rgb', 'render_rgb'):
    if hasattr(environment, name):
      return getattr(environment, name)()
  raise ValueError(
    f'{type(environment).__name__} cannot be rendered. Add a method '
    'render_rgb() that returns uint8 RGB [height, width, 3].'
  )


class _WebM:
  """A WebM file, encoded as VP8."""

  def __init__(self, path: pathlib.Path, frames_per_second: float):
    self._path = path
    self._fps = frames_per_second
    self._writer: Optional[Any] = None

  def add(self, frame: np.ndarray) -> None:
    if self._writer is None:
      height, width = frame.shape[:2]
      codec = cv2.VideoWriter.fourcc(*'VP80')
      size = (width, height)
      self._writer = cv2.VideoWriter(str(self._path), codec, self._fps, size)
      if not self._writer.isOpened():
        raise RuntimeError(f'OpenCV cannot write the video {self._path}.')
    self._writer.write(np.ascontiguousarray(frame[..., ::-1]))

  def close(self) -> None:
    if self._writer is not None:
      self._writer.release()


class _Gif:
  """A GIF that loops.

  Frames are compressed and buffered, because Pillow writes all of them at once.
  """

  def __init__(self, path: pathlib.Path, frames_per_second: float):
    self._path = path
    self._milliseconds = round(1000 / frames_per_second)
    self._frames: List[bytes] = []
    self._size = (0, 0)

  def add(self, frame: np.ndarray) -> None:
    image = Image.fromarray(frame)
    self._size = image.size
    self._frames.append(zlib.compress(image.tobytes()))

  def close(self) -> None:
    first, *others = self._images()
    first.save(
      self._path,
      format='GIF',
      save_all=True,
      append_images=others,
      duration=self._milliseconds,
      loop=0,
    )

  def _images(self) -> Iterator[Image.Image]:
    """Yields the frames with a reduced palette, for a small file."""
    for frame in self._frames:
      image = Image.frombytes('RGB', self._size, zlib.decompress(frame))
      yield image.quantize(_GIF_COLORS, dither=Image.Dither.NONE)


_FORMATS: Dict[str, Callable[[pathlib.Path, float], Union[_WebM, _Gif]]] = {
  '.webm': _WebM,
  '.gif': _Gif,
}


class VideoWriter:
  """Writes a video frame by frame; the file appears when `close` completes it.

  Attributes:
    frames: the number of frames written so far.
  """

  def __init__(self, path: str, *, frames_per_second: float):
    """Creates the directory of the video.

    Args:
      path: the path of the file, ending in `.webm` or `.gif`.
      frames_per_second: the speed of the video; 15 shows Atari's actor steps at
        the speed of the game.

    Raises:
      ValueError: if the path has another ending, or its directory cannot be
        created.
    """
    self._path = pathlib.Path(path)
    if self._path.suffix not in _FORMATS:
      raise ValueError(f'video={path!r} must end in .webm or .gif.')
    try:
      self._path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
      raise ValueError(
        f'video={path!r} cannot be written: {error}. Choose another file.'
      ) from error
    self._partial = self._path.with_name('.' + self._path.name)
    self._file = _FORMATS[self._path.suffix](self._partial, frames_per_second)
    self.frames = 0

  def write(self, frame: np.ndarray) -> None:
    """Adds a frame, uint8 RGB [height, width, 3]; all sizes must be equal."""
    self._file.add(frame)
    self.frames += 1

  def close(self) -> None:
    """Completes the file; without frames, no file is written."""
    if self.frames:
      self._file.close()
      self._partial.replace(self._path)
