"""The film of an episode in which the trained agent, with flights, acts."""

from typing import Any, Iterable, List, NamedTuple

from bt_acme import environments
from bt_acme.evaluation import control_view
from bt_acme.evaluation import video as video_lib
from experiments.demo import plan as plan_lib

_FRAMES_PER_SECOND = 4.0
_LAST_FRAMES = 8  # The last picture stays for as many frames.


class Film(NamedTuple):
  """An episode of the task, whose layout never changes.

  Attributes:
    actions: those taken.
    sources: who decided each of them: OWN, EXTRA or FLIGHT.
    episode_return: what the episode paid.
  """

  actions: List[int]
  sources: List[int]
  episode_return: float

  @property
  def worth(self) -> Any:
    """Is larger for an episode that shows more: solved, all three, short."""
    return (
      self.episode_return > 0,
      len(set(self.sources)),
      -len(self.actions),
    )


def best(films: Iterable[Film]) -> Film:
  """Returns the film that shows most."""
  return max(films, key=lambda film: film.worth)


def draw(film: Film, path: str) -> None:
  """Plays the actions of an episode again and draws each of its steps."""
  environment: Any = environments.make(plan_lib.TASK, seed=0)
  view = control_view.ControlView(environment)
  writer = video_lib.VideoWriter(path, frames_per_second=_FRAMES_PER_SECOND)
  environment.reset()
  for action, source in zip(film.actions, film.sources, strict=True):
    writer.write(view.frame(source))
    environment.step(action)
  last = view.last_frame(f'end, return {film.episode_return:.2f}')
  for _ in range(_LAST_FRAMES):
    writer.write(last)
  writer.close()
  environment.close()
