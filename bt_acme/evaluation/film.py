"""Films the first episode of an evaluation."""

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
  """Films the first episode, if there is a writer.

  With behavior transfer, one sees who is in control.
  """

  def __init__(
    self,
    writer: Optional[video_lib.VideoWriter],
    evaluator: evaluator_lib.Evaluator,
    agent: assembly.Agent,
    *,
    max_frames: int,
  ):
    """Prepares to draw the evaluator's first environment.

    Args:
      writer: the video; None for none.
      evaluator: plays the episodes.
      agent: the agent that acts.
      max_frames: the film stops after this many frames.
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
    """Adds a frame while the episode goes on."""
    del step
    if self._writer and going[0] and self._writer.frames < self._max_frames:
      self._writer.write(self._view.frame(self._evaluator.sources[0]))

  def on_end(self, i: int) -> None:
    """Adds what the first environment shows at the end of its episode."""
    if self._writer and i == 0 and self._writer.frames < self._max_frames:
      self._writer.write(self._view.last_frame('end'))
