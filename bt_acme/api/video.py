"""Videos of what a run has learned, which a notebook plays."""

import base64
import pathlib
import tempfile
from typing import Optional, Union

from bt_acme import assembly, evaluation
from bt_acme.api import evaluating
from bt_acme.evaluation import film as film_lib
from bt_acme.evaluation import video as video_lib


class Video:
  """A video in WebM.

  Attributes:
    data: the bytes of the file.
  """

  def __init__(self, data: bytes):
    self.data = data

  def save(self, path: Union[str, pathlib.Path]) -> None:
    """Writes it to a file; its name should end in `.webm`."""
    pathlib.Path(path).write_bytes(self.data)

  def _repr_html_(self) -> str:
    text = base64.b64encode(self.data).decode()
    return (
      '<video controls autoplay loop muted>'
      f'<source src="data:video/webm;base64,{text}" type="video/webm"></video>'
    )


def show(
  source: evaluating.Source,
  *,
  env: str = '',
  seed: int = 0,
  epsilon: Optional[float] = None,
  flights: bool = False,
  frames_per_second: float = film_lib.FRAMES_PER_SECOND,
  max_frames: int = 1_000,
) -> Video:
  """Films an episode.

  With behavior transfer, the color of the border and the caption tell who is in
  control: the agent, the extra action, or a flight.

  Args:
    source: see `evaluate`, as `env` and `epsilon`.
    env: the environment; by default that of the training.
    seed: of the episode.
    epsilon: the share of random actions; by default `evaluation_epsilon`.
    flights: whether flights start, as they do in training.
    frames_per_second: the speed; an actor step is a frame.
    max_frames: the video stops after this many.

  Returns:
    The video, which a notebook shows if it is the last value of a cell.

  Raises:
    ValueError: for an environment that does not fit.
  """
  agent = assembly.moved(source.agent, env) if env else source.agent
  with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / 'episode.webm'
    writer = video_lib.VideoWriter(
      str(path), frames_per_second=frames_per_second
    )
    evaluator = evaluation.Evaluator(
      agent,
      episodes=1,
      seed=seed,
      first_environment=evaluation.FIRST_ENVIRONMENT,
      epsilon=epsilon,
      flights=flights,
    )
    film = film_lib.EpisodeFilm(writer, evaluator, agent, max_frames=max_frames)
    try:
      evaluator.run(
        source.variables,
        source.statistics,
        on_step=film.on_step,
        on_end=film.on_end,
      )
    finally:
      evaluator.close()
    writer.close()
    return Video(path.read_bytes())
