"""Records videos of evaluation episodes."""

from typing import Any, Callable, Optional, Tuple

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
  scale: int = _SCALE,
) -> Tuple[OnStep, OnEnd]:
  """Returns functions that record the evaluator's first episode.

  With behavior transfer, the video shows who is in control.

  Args:
    writer: the writer of the video; None for no video.
    evaluator: the evaluator that plays the episodes.
    agent: the agent that acts.
    max_frames: the maximum number of frames.
    scale: the factor by which frames are enlarged.

  Returns:
    `on_step` and `on_end` for `evaluator.run`.
  """
  view = control_view.ControlView(
    evaluator.environment.environments[0],
    scale=scale,
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


def record(
  path: str,
  agent: assembly.Agent,
  variables: assembly.Variables,
  statistics: Optional[Any],
  *,
  seed: int,
  epsilon: Optional[float],
  flights: bool = False,
  frames_per_second: float = FRAMES_PER_SECOND,
  max_frames: int,
  scale: int = _SCALE,
) -> None:
  """Records a video of one episode.

  Args:
    path: the file to write, ending in `.webm` or `.gif`.
    agent: the agent that acts, with the name of the environment.
    variables: the parameters of the agent.
    statistics: the statistics of the agent's intrinsic reward, if any.
    seed: the random seed of the episode.
    epsilon: the probability of a random action; None for the agent's
      `evaluation_epsilon`.
    flights: whether the agent starts flights, as in training.
    frames_per_second: the speed; each actor step is one frame.
    max_frames: the maximum number of frames.
    scale: the factor by which frames are enlarged.
  """
  writer = video_lib.VideoWriter(path, frames_per_second=frames_per_second)
  evaluator = evaluator_lib.Evaluator(
    agent,
    episodes=1,
    seed=seed,
    first_environment=evaluator_lib.FIRST_ENVIRONMENT,
    epsilon=epsilon,
    flights=flights,
  )
  on_step, on_end = first_episode(
    writer, evaluator, agent, max_frames=max_frames, scale=scale
  )
  try:
    evaluator.run(variables, statistics, on_step=on_step, on_end=on_end)
  finally:
    evaluator.close()
  writer.close()
