"""Videos of runs and behaviors; a notebook plays them inline."""

import base64
import dataclasses
import pathlib

from bt_acme import environments, files
from bt_acme.api import loading
from bt_acme.config import checks
from bt_acme.evaluation import episode_records


@dataclasses.dataclass(frozen=True)
class Video:
  """A WebM video.

  Attributes:
    data: the contents of the file.

  Example:
    ```python
    behavior = bt_acme.load_behavior('minigrid-explorer')
    video = bt_acme.video.show(behavior, env='MiniGrid-Empty-5x5-v0')
    ```
  """

  data: bytes = dataclasses.field(repr=False)

  def save(self, path: str | pathlib.Path) -> None:
    """Writes the video to a file, and creates its directory.

    Args:
      path: the file to write, ending in `.webm`.

    Raises:
      ValueError: if the path has another ending.

    Example:
      ```python
      video.save('episode.webm')
      ```
    """
    checks.require(
      pathlib.Path(path).suffix.lower() == '.webm',
      f'path={str(path)!r} must end in .webm, because the video is a WebM '
      'file. For a GIF, pass `videos` to `bt_acme.describe`.',
    )
    with files.new_file(path) as file:
      file.write(self.data)

  def _repr_html_(self) -> str:
    text = base64.b64encode(self.data).decode()
    return (
      '<video controls autoplay loop muted>'
      f'<source src="data:video/webm;base64,{text}" type="video/webm"></video>'
    )


def show(
  source: loading.Source,
  *,
  env: str = '',
  seed: int = 0,
  epsilon: float | None = None,
  flights: bool = False,
  frames_per_second: float = episode_records.FRAMES_PER_SECOND,
  max_frames: int = 1_000,
) -> Video:
  """Records a video of one episode.

  For an agent with behavior transfer, the border color and the caption of each
  frame show who selects the action: the agent, the extra action or a flight.

  Args:
    source: a run, a behavior, the workdir of a run, or anything that
      `load_behavior` accepts.
    env: the name of the environment; empty for the one used in training, or the
      first of several. The shapes of observations and actions must equal those
      of training. Behaviors that were not trained, such as `FromCallable`, need
      a name.
    seed: the random seed of the episode.
    epsilon: the probability of a random action; None for the agent's
      `evaluation_epsilon`.
    flights: whether the agent starts flights, as in training.
    frames_per_second: the speed; each actor step is one frame.
    max_frames: the maximum length of the video in frames. A longer episode is
      not played to its end.

  Returns:
    The video, which a notebook plays if it is the result of a cell.

  Raises:
    ValueError: if the environment does not exist, has other shapes, or cannot
      be rendered, if the agent has no flights to start, or if another argument
      is outside its range.

  Example:
    ```python
    behavior = bt_acme.load_behavior('minigrid-explorer')
    bt_acme.video.show(behavior, env='MiniGrid-Empty-5x5-v0', epsilon=0.1)
    ```
  """
  checks.check_value(
    'frames_per_second', frames_per_second, checks.setting(1.0, above=0)
  )
  checks.check_value('max_frames', max_frames, checks.setting(1, above=0))
  agent, learned = loading.load_agent(source, env)
  first, *_ = environments.names_in(agent.spec.name)
  return Video(
    episode_records.film(
      agent.named(first),
      learned,
      suffix='.webm',
      seed=seed,
      epsilon=epsilon,
      flights=flights,
      frames_per_second=frames_per_second,
      max_frames=max_frames,
    )
  )
