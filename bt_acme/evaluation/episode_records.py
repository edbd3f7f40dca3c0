"""Plays evaluation episodes and records each step, also as a video."""

import pathlib
import tempfile
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bt_acme import assembly, environments, memory_check
from bt_acme.config import checks
from bt_acme.config import run as run_config
from bt_acme.environments import vector
from bt_acme.evaluation import control_view, video_writer
from bt_acme.evaluation import evaluator as evaluator_lib

FRAMES_PER_SECOND = 15.0
_MAX_FRAMES = 1_000


class Recording(NamedTuple):
  """The record of an episode.

  Attributes:
    metrics: the metrics of the episode, by the names of `EpisodeMetrics`.
    actions: the actions.
    sources: who selected each action: OWN, EXTRA or FLIGHT.
    cells: the column and row of the agent before each action; empty if the
      environment has no cells.
  """

  metrics: dict[str, float]
  actions: list[int]
  sources: list[int]
  cells: list[tuple[int, int]]

  @property
  def row(self) -> dict[str, float]:
    """The metrics, and the number of visited `cells` if there are any."""
    return {**self.metrics, **({'cells': self.num_cells} if self.cells else {})}

  @property
  def num_cells(self) -> int:
    """The number of distinct visited cells."""
    return len(set(self.cells))

  @property
  def is_solved(self) -> bool:
    """Whether the return of the task is positive."""
    return self.metrics['episode_return'] > 0


def play(
  agent: assembly.Agent,
  learned: assembly.Learned,
  *,
  episodes: int = 1,
  seed: int,
  epsilon: float | None = None,
  flights: bool = False,
  video: str = '',
  frames_per_second: float = FRAMES_PER_SECOND,
  max_frames: int = _MAX_FRAMES,
  scale: int = 2,
  stops_with_video: bool = False,
) -> list[Recording]:
  """Plays evaluation episodes in parallel; makes a video of the first.

  With behavior transfer, the video shows who is in control.

  Args:
    agent: the agent that acts, with the name of the environment.
    learned: the policy of the agent.
    episodes: the number of episodes, and of environments.
    seed: the random seed of the episodes.
    epsilon: the probability of a random action; None for the agent's
      `evaluation_epsilon`.
    flights: whether the agent starts flights, as in training.
    video: the file to write, ending in `.webm` or `.gif`; empty for no video.
    frames_per_second: the speed; each actor step is one frame.
    max_frames: the maximum number of frames.
    scale: the factor by which frames are enlarged.
    stops_with_video: whether to stop soon after the last frame of the video.

  Returns:
    The episodes, in the order of the environments; none if they were stopped.

  Raises:
    ValueError: if `seed` is out of range, if there are fewer episodes than
      environments in the list of names, or if the episodes need more memory
      than this machine has.
  """
  needs = memory_check.environments(agent, episodes, f'episodes={episodes}')
  memory_check.check([needs])
  settings = run_config.RunConfig.__dataclass_fields__
  checks.check_value('seed', seed, settings['seed'])
  num_names = len(environments.names_in(agent.spec.name))
  checks.require(
    episodes >= num_names,
    f'episodes={episodes} is less than the {num_names} environments of '
    f'env={agent.spec.name!r}. Choose one of them as env, or more episodes.',
  )
  writer = None
  if video:
    writer = video_writer.VideoWriter(
      video, frames_per_second=frames_per_second
    )
  evaluator = evaluator_lib.Evaluator(
    agent, episodes=episodes, seed=seed, epsilon=epsilon, flights=flights
  )
  view = control_view.ControlView(
    evaluator.environment.environments[0],
    scale=scale,
    shows_control=agent.transfer is not None,
    behaviors=[behavior.name for behavior in agent.behaviors],
  )

  def on_step(going: np.ndarray) -> None:
    if writer and going[0] and writer.frames < max_frames:
      actor = evaluator.actor
      writer.write(view.frame(actor.sources[0], actor.in_control[0]))

  def on_end(i: int) -> None:
    if writer and i == 0 and writer.frames < max_frames:
      writer.write(view.last_frame('end'))

  try:
    recordings = record(
      evaluator,
      learned,
      should_stop=lambda: (
        stops_with_video and writer is not None and writer.frames >= max_frames
      ),
      on_step=on_step,
      on_end=on_end,
    )
    if writer:
      writer.close()
  finally:
    evaluator.close()
    if writer:
      writer.discard()
  return recordings


def film(
  agent: assembly.Agent,
  learned: assembly.Learned,
  *,
  suffix: str,
  **options: Any,
) -> bytes:
  """Returns the contents of a video of one episode.

  Args:
    agent: see `play`.
    learned: see `play`.
    suffix: `.webm` or `.gif`.
    **options: the other arguments of `play`.
  """
  with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / f'episode{suffix}'
    play(agent, learned, video=str(path), stops_with_video=True, **options)
    return path.read_bytes()


def record(
  evaluator: evaluator_lib.Evaluator,
  learned: assembly.Learned,
  *,
  on_step: Callable[[np.ndarray], None] = lambda going: None,
  **options: Any,
) -> list[Recording]:
  """Plays one episode in each environment of an evaluator.

  Args:
    evaluator: the evaluator that plays.
    learned: the policy of the agent.
    on_step: a function that is called before each step with a mask bool [N] of
      unfinished episodes.
    **options: the other arguments of `Evaluator.run`.

  Returns:
    The episodes, in the order of the environments; none if they were stopped.
  """
  environments: Any = evaluator.environment.environments
  recordings = [Recording({}, [], [], []) for _ in environments]

  def record_step(step: vector.VectorStep, going: np.ndarray) -> None:
    del step
    on_step(going)
    for i in np.flatnonzero(going):
      recordings[i].actions.append(int(evaluator.actions[i]))
      recordings[i].sources.append(int(evaluator.actor.sources[i]))
      if hasattr(environments[i], 'agent_cell'):
        recordings[i].cells.append(environments[i].agent_cell())

  rows = evaluator.run(learned, on_step=record_step, **options)
  pairs = zip(recordings, rows, strict=False)
  return [recording._replace(metrics=row) for recording, row in pairs]
