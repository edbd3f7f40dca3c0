"""Records a video of the first episode of an evaluation."""

from typing import Callable, Optional, Tuple

import numpy as np

from bt_acme import assembly
from bt_acme.environments import vector
from bt_acme.evaluation import control_view
from bt_acme.evaluation import evaluator as evaluator_lib
from bt_acme.evaluation import video as video_lib

FRAMES_PER_SECOND = 15.0
_SCALE = 2

OnStep = Callable[[vector.VectorStep, np.ndarray], None]
OnEnd = Callable[[int], None]


def first_episode(
  writer: Optional[video_lib.VideoWriter],
  evaluator: evaluator_lib.Evaluator,
  agent: assembly.Agent,
  *,
  max_frames: int,
) -> Tuple[OnStep, OnEnd]:
  """Returns functions that record the evaluator's first episode.

  With behavior transfer, the video shows who is in control.

  Args:
    writer: the writer of the video; None for no video.
    evaluator: the evaluator that plays the episodes.
    agent: the agent that acts.
    max_frames: the maximum number of frames.

  Returns:
    `on_step` and `on_end` for `evaluator.run`.
  """
  view = control_view.ControlView(
    evaluator.environment.environments[0],
    scale=_SCALE,
    shows_control=agent.transfer is not None,
  )

  def on_step(step: vector.VectorStep, going: np.ndarray) -> None:
    del step
    if writer and going[0] and writer.frames < max_frames:
      writer.write(view.frame(evaluator.sources[0]))

  def on_end(i: int) -> None:
    if writer and i == 0 and writer.frames < max_frames:
      writer.write(view.last_frame('end'))

  return on_step, on_end
