"""Writes videos for browsers, as WebM files and GIFs."""

import pathlib
from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from PIL import Image

_GIF_COLORS = 128


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
      ValueError: if the path has another ending.
    """
    self._path = pathlib.Path(path)
    if self._path.suffix not in ('.webm', '.gif'):
      raise ValueError(f'video={path!r} must end in .webm or .gif.')
    self._path.parent.mkdir(parents=True, exist_ok=True)
    self._partial = self._path.with_name('.' + self._path.name)
    self._frames_per_second = frames_per_second
    self._webm: Any | None = None
    # The frames of a GIF, which Pillow writes all at once.
    self._gif: list[Image.Image] = []
    self.frames = 0

  def write(self, frame: np.ndarray) -> None:
    """Adds a frame, uint8 RGB [height, width, 3]; all sizes must be equal."""
    if self._path.suffix == '.gif':
      # A reduced palette makes a small file.
      self._gif.append(
        Image.fromarray(frame).quantize(_GIF_COLORS, dither=Image.Dither.NONE)
      )
    else:
      self._webm = self._webm or self._open_webm(frame.shape[1::-1])
      self._webm.write(np.ascontiguousarray(frame[..., ::-1]))
    self.frames += 1

  def close(self) -> None:
    """Completes the file; without frames, no file is written."""
    if not self.frames:
      return
    if self._webm is not None:
      self._webm.release()
    else:
      self._write_gif()
    self._partial.replace(self._path)

  def discard(self) -> None:
    """Removes what `close` has not completed."""
    self._partial.unlink(missing_ok=True)

  def _open_webm(self, size: Sequence[int]) -> Any:
    """Opens a WebM file of this width and height, encoded as VP8."""
    codec = cv2.VideoWriter.fourcc(*'VP80')
    writer = cv2.VideoWriter(
      str(self._partial), codec, self._frames_per_second, size
    )
    if not writer.isOpened():
      raise RuntimeError(f'OpenCV cannot write the video {self._path}.')
    return writer

  def _write_gif(self) -> None:
    """Writes a GIF that loops."""
    # A GIF counts hundredths of a second, so the durations differ.
    ends = np.round(100 * np.arange(self.frames + 1) / self._frames_per_second)
    self._gif[0].save(
      self._partial,
      format='GIF',
      save_all=True,
      append_images=self._gif[1:],
      duration=(10 * np.diff(ends)).tolist(),
      loop=0,
    )
