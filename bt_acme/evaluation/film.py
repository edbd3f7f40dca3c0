"""Records a video of the first episode of an evaluation."""

from typing import Optional

import numpy as np

from bt_acme import assembly
from bt_acme.environments import vector
from bt_acme.evaluation import control_view
from bt_acme.evaluation import evaluator as evaluator_lib
from bt_acme.evaluation import video as video_lib

FRAMES_PER_SECOND = 15.0
_SCALE = 2


class EpisodeFilm:
  """Records the first episode, if a writer is given.

  With behavior transfer, the video shows who is in control.
  """

  def __init__(
    self,
    writer: Optional[video_lib.VideoWriter],
    evaluator: evaluator_lib.Evaluator,
    agent: assembly.Agent,
    *,
    max_frames: int,
  ):
    """Initializes the view of the evaluator's first environment.

    Args:
      writer: the writer of the video; None for no video.
      evaluator: the evaluator that plays the episodes.
      agent: the agent that acts.
      max_frames: the maximum number of frames.
    """
    self._writer = writer
    self._evaluator = evaluator
    self._max_frames = max_frames
    self._view = control_view.ControlView(
      evaluator.environment.environments[0],
      scale=_SCALE,
      shows_control=agent.transfer is not None,
    )

  def on_step(self, step: vector.VectorStep, going: np.ndarray) -> None:
    """Adds a frame unless the episode has ended."""
    del step
    if self._writer and going[0] and self._writer.frames < self._max_frames:
      self._writer.write(self._view.frame(self._evaluator.sources[0]))

  def on_end(self, i: int) -> None:
    """Adds the last frame of the first environment's episode."""
    if self._writer and i == 0 and self._writer.frames < self._max_frames:
      self._writer.write(self._view.last_frame('end'))
