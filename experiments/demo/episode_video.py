"""Draws a video of an episode of the trained agent, with flights."""

from typing import Any, Iterable, NamedTuple

from bt_acme import environments
from bt_acme.evaluation import control_view
from bt_acme.evaluation import video as video_lib

_FRAMES_PER_SECOND = 4.0
# Grids of at most half as many columns are enlarged.
_CELLS = 20
_LAST_FRAMES = 8  # The last image is repeated for this many frames.


class Episode(NamedTuple):
  """An episode of the task, which has a fixed layout.

  Attributes:
    actions: the actions taken.
    sources: the source of each action: OWN, EXTRA or FLIGHT.
    episode_return: the return of the episode.
  """

  actions: list[int]
  sources: list[int]
  episode_return: float

  @property
  def rank(self) -> Any:
    """A sort key: solved, then more kinds of sources, then shorter."""
    return (
      self.episode_return > 0,
      len(set(self.sources)),
      -len(self.actions),
    )


def best(episodes: Iterable[Episode]) -> Episode:
  """Returns the most informative episode."""
  return max(episodes, key=lambda episode: episode.rank)


def draw(env: str, episode: Episode, path: str) -> None:
  """Replays the actions of an episode and writes a video of all steps.

  Args:
    env: the environment, which must have a single layout.
    episode: the episode.
    path: the path of the GIF.
  """
  environment: Any = environments.make(env, seed=0)
  columns, _ = environment.grid_size()
  view = control_view.ControlView(environment, scale=max(1, _CELLS // columns))
  writer = video_lib.VideoWriter(path, frames_per_second=_FRAMES_PER_SECOND)
  environment.reset()
  for action, source in zip(episode.actions, episode.sources, strict=True):
    writer.write(view.frame(source))
    environment.step(action)
  last = view.last_frame(f'end, return {episode.episode_return:.2f}')
  for _ in range(_LAST_FRAMES):
    writer.write(last)
  writer.close()
  environment.close()
