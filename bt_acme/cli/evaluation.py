"""From settings to played episodes: what `launch/evaluate.py` does."""

import dataclasses
import os
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from bt_acme import (
  assembly,
  behaviors,
  compilation_cache,
  environments,
  files,
)
from bt_acme.behaviors import exported_folder
from bt_acme.cli import recorded_agent
from bt_acme.config import checks
from bt_acme.config import run as run_config
from bt_acme.evaluation import evaluator as evaluator_lib
from bt_acme.evaluation import film as film_lib
from bt_acme.evaluation import recorder, tables
from bt_acme.evaluation import video as video_lib
from bt_acme.runtime import learned, requirements
from bt_acme.runtime import workdir as workdir_lib

Row = Dict[str, float]  # The metrics of an episode.

_SHOWN = (
  ('episode_return', 'return'),
  ('episode_length', 'actor steps'),
  ('greedy_extra_share', 'extra action'),
)


@dataclasses.dataclass(frozen=True)
class EvaluationConfig:
  """What is evaluated, and how."""

  behavior: str = checks.setting(
    '', 'The folder of an exported behavior to evaluate.'
  )
  workdir: str = checks.setting(
    '',
    'The workdir of a run to evaluate instead of a behavior; its newest '
    'checkpoint is loaded.',
  )
  env: str = checks.setting(
    '',
    'The environment to play; without a name it is the one that the agent was '
    'trained in. It must have the same observations and actions.',
  )
  episodes: int = checks.setting(
    10, 'The evaluation plays this many episodes.', above=0
  )
  epsilon: float = checks.setting(
    -1.0,
    'The policy takes random actions at this rate; with a negative number, at '
    'the rate of the evaluation_epsilon that the agent was trained with.',
    maximum=1,
  )
  seed: int = checks.setting(
    0,
    'The seed of the episodes. No run meets them in training.',
    minimum=0,
    maximum=run_config.LARGEST_SEED,
  )
  flights: bool = checks.setting(
    False,
    'Flights start, as they do in training; otherwise only the extra action '
    'hands control to a behavior.',
  )
  video: str = checks.setting(
    '',
    'The first episode is filmed into this file, if one is named: a .webm, '
    'or a .gif for short episodes. With behavior transfer, the color of its '
    'border and its caption tell who is in control.',
  )
  max_video_steps: int = checks.setting(
    4_500, 'The video stops after this many actor steps.', above=0
  )

  output: str = checks.setting(
    '',
    'A CSV file that takes a row for each episode, if one is named. It is '
    'written when all episodes are over, and a file that is there is kept.',
  )

  def __post_init__(self) -> None:
    checks.check(self)
    checks.require(
      not os.path.lexists(self.output),
      f'output={self.output!r} is there already: remove it, or name another '
      'file.',
    )
    for name in ('output', 'video'):
      _check_can_be_made(name, getattr(self, name))
    if self.env:
      environments.validate(self.env)


def _check_can_be_made(setting: str, path: str) -> None:
  """Raises ValueError for a file that will be written in the end, and cannot.

  Args:
    setting: the setting that names the file.
    path: its path; empty for none.
  """
  try:
    if path:
      files.check_writable(path)
  except OSError as error:
    raise ValueError(
      f'{setting}={path!r} cannot be written: {error}. Name another file.'
    ) from error


class Loaded(NamedTuple):
  """An agent with what it has learned; see `assembly` for the parts.

  Attributes:
    agent: the agent.
    variables: its parameters.
    statistics: the statistics of its intrinsic reward; None without one.
    actor_steps: the number of actor steps that it was trained for.
  """

  agent: assembly.Agent
  variables: assembly.Variables
  statistics: Any
  actor_steps: int


def load(config: EvaluationConfig) -> Loaded:
  """Loads the agent of a behavior or of a run.

  Raises:
    ValueError: unless one of them is named and can be loaded.
  """
  checks.require(
    bool(config.behavior) != bool(config.workdir),
    f'behavior={config.behavior!r} and workdir={config.workdir!r}: give one of '
    'them.',
  )
  if config.behavior:
    behavior = behaviors.Exported(config.behavior)
    loaded = Loaded(
      behavior.agent,
      behavior.variables,
      behavior.statistics,
      behavior.actor_steps,
    )
  else:
    loaded = _load_run(config.workdir)
  if config.env:
    loaded = loaded._replace(agent=assembly.moved(loaded.agent, config.env))
  return loaded


def run(config: EvaluationConfig) -> None:
  """Plays the episodes, films one, and prints and keeps a table of all."""
  compilation_cache.enable()
  loaded = load(config)
  requirements.check_evaluation(loaded.agent, config.episodes)
  writer = None
  if config.video:
    writer = video_lib.VideoWriter(
      config.video, frames_per_second=film_lib.FRAMES_PER_SECOND
    )
  rows = _play(config, loaded, writer)
  print(f'{loaded.agent.spec.name}, {len(rows)} episodes')
  print(_table(rows))
  if writer is not None:
    writer.close()
    print(f'The video of episode 0 is {config.video} ({writer.frames} frames).')
  if config.output:
    files.write_text(config.output, _as_csv(config, loaded, rows))
    print(f'The episodes are in {config.output}')


def _load_run(workdir: str) -> Loaded:
  """Loads the newest checkpoint of a run."""
  identity = workdir_lib.read_identity(workdir)
  agent = recorded_agent.make(workdir, identity)
  found = learned.read(workdir_lib.run_of(workdir, identity), agent)
  return Loaded(agent, found.variables, found.statistics, found.actor_steps)


def _play(
  config: EvaluationConfig,
  loaded: Loaded,
  writer: Optional[video_lib.VideoWriter],
) -> List[Row]:
  """Plays the episodes and returns the metrics of each."""
  evaluator = evaluator_lib.Evaluator(
    loaded.agent,
    episodes=config.episodes,
    seed=config.seed,
    first_environment=evaluator_lib.FIRST_ENVIRONMENT,
    epsilon=config.epsilon if config.epsilon >= 0 else None,
    flights=config.flights,
  )
  film = film_lib.EpisodeFilm(
    writer, evaluator, loaded.agent, max_frames=config.max_video_steps
  )
  recordings = recorder.record(
    evaluator,
    loaded.variables,
    loaded.statistics,
    watch=film.on_step,
    on_end=film.on_end,
  )
  evaluator.close()
  return [recording.row for recording in recordings]


def _as_csv(config: EvaluationConfig, loaded: Loaded, rows: List[Row]) -> str:
  """Lays out what was played, a row an episode, for programs."""
  played = {
    'env': loaded.agent.spec.name,
    'actor_steps': loaded.actor_steps,
    'params_sha256': exported_folder.checksum(loaded.variables),
    'seed': config.seed,
  }
  return tables.csv_text(
    [{'episode': i, **played, **row} for i, row in enumerate(rows)]
  )


def _table(rows: List[Row]) -> str:
  """Lays out the metrics of each episode, and their means in the last row."""
  keys = [key for key, _ in _SHOWN]
  means = {key: float(np.mean([row[key] for row in rows])) for key in keys}
  labelled: List[Tuple[Any, Row]] = [
    *enumerate(rows),
    ('mean', means),
  ]
  cells = [
    [label, *(f'{row[key]:.3f}' for key in keys)] for label, row in labelled
  ]
  return tables.table(['episode', *(title for _, title in _SHOWN)], cells)
