"""Videos of an environment, as MP4 files."""

import pathlib
from typing import Any, Optional

import cv2
import numpy as np


class VideoWriter:
  """Writes what an environment shows a person, frame by frame.

  The file gets its final name when `close` completes it.

  Attributes:
    frames: the number of frames written so far.
  """

  def __init__(self, path: str, *, frames_per_second: float, scale: int = 1):
    """Prepares the file's folder.

    Args:
      path: the path of the file, ending in `.mp4`.
      frames_per_second: the video's speed; 15 shows Atari's actor steps at the
        speed of the game.
      scale: the factor that enlarges each frame.

    Raises:
      ValueError: if the path does not end in `.mp4`, or has no folder.
    """
    self._path = pathlib.Path(path)
    if self._path.suffix != '.mp4':
      raise ValueError(f'video={path!r} must end in .mp4.')
    try:
      self._path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
      raise ValueError(f'video={path!r} cannot be written: {error}.') from error
    self._partial = self._path.with_name('.' + self._path.name)
    self._fps = frames_per_second
    self._scale = scale
    self._writer: Optional[Any] = None
    self.frames = 0

  def write(self, environment: Any) -> None:
    """Adds what the environment shows now."""
    if hasattr(environment, 'screen_rgb'):
      frame = environment.screen_rgb()
    else:
      frame = environment.render_rgb()
    frame = frame.repeat(self._scale, axis=0).repeat(self._scale, axis=1)
    if self._writer is None:
      height, width = frame.shape[:2]
      self._writer = self._open(height, width)
    self._writer.write(np.ascontiguousarray(frame[..., ::-1]))
    self.frames += 1

  def _open(self, height: int, width: int) -> Any:
    codec = cv2.VideoWriter.fourcc(*'mp4v')
    size = (width, height)
    writer = cv2.VideoWriter(str(self._partial), codec, self._fps, size)
    if not writer.isOpened():
      raise RuntimeError(f'OpenCV cannot write the video {self._partial}.')
    return writer

  def close(self) -> None:
    """Completes the file; makes none if nothing was written."""
    if self._writer is not None:
      self._writer.release()
      self._partial.replace(self._path)
      self._writer = None
