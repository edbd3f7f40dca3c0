"""Evaluates an exported behavior or a run, for `launch/evaluate.py`."""

import dataclasses
import os

import numpy as np

from bt_acme import assembly, behaviors, compilation_cache, environments, files
from bt_acme.api import runs
from bt_acme.behaviors import exported_folder
from bt_acme.config import checks
from bt_acme.config import run as run_config
from bt_acme.evaluation import episode_records, tables
from bt_acme.runtime import output

_EXISTS = 'output={!r} already exists. Delete it, or choose another.'
# The printed metrics of an episode, and their titles.
_SHOWN = {
  'episode_return': 'return',
  'episode_length': 'actor steps',
  'greedy_extra_share': 'extra action',
}


@dataclasses.dataclass(frozen=True)
class EvaluationConfig:
  """Settings of an evaluation.

  Attributes:
    behavior: Exported behavior to evaluate: its directory, the workdir of a
      pre-training run, the name of a behavior that comes with the package, or
      the address of an archive.
    workdir: Workdir of a run to evaluate instead of a behavior; its newest
      checkpoint is loaded.
    env: Environment to play; must have the same observations and actions as the
      environment that the agent was trained in, which is the default.
    episodes: Number of episodes to play.
    epsilon: Probability of a random action; if negative, the evaluation_epsilon
      that the agent was trained with.
    seed: Random seed of the episodes, which differ from all training episodes.
    flights: Whether to start flights, as in training; otherwise only the extra
      action hands control to a behavior.
    video: Video file of the first episode: .webm, or .gif for short episodes.
      With behavior transfer, the border color and the caption show who is in
      control. Empty records no video.
    max_video_steps: Maximum length of the video in actor steps.
    output: CSV file with one row per episode, written after the last episode;
      must not exist yet. Empty writes no file. In MiniGrid, the column `cells`
      is the number of cells in which the agent acted, so without the cell in
      which the episode ended.
  """

  behavior: str = ''
  workdir: str = ''
  env: str = ''
  episodes: int = checks.setting(10, above=0)
  epsilon: float = checks.setting(-1.0, maximum=1)
  seed: int = checks.setting(0, minimum=0, maximum=run_config.LARGEST_SEED)
  flights: bool = False
  video: str = ''
  max_video_steps: int = checks.setting(4_500, above=0)

  output: str = ''

  def __post_init__(self) -> None:
    checks.check(self)
    for name in ('output', 'video'):
      path = getattr(self, name)
      try:
        if path:
          files.check_writable(path)
      except OSError as error:
        raise ValueError(
          f'{name}={path!r} is not writable: {error}. Choose another file.'
        ) from error
    if os.path.lexists(self.output):
      raise ValueError(_EXISTS.format(self.output))
    checks.require(
      not self.video
      or os.path.realpath(self.output) != os.path.realpath(self.video),
      f'output={self.output!r} and video={self.video!r} are the same file. '
      'Choose another file for one of them.',
    )
    if self.env:
      environments.validate(self.env)


def load(config: EvaluationConfig) -> runs.Run | behaviors.Exported:
  """Loads a run or a behavior.

  Raises:
    ValueError: unless exactly one of `behavior` and `workdir` is set, or if it
      cannot be loaded.
  """
  checks.require(
    bool(config.behavior) != bool(config.workdir),
    f'behavior={config.behavior!r} and workdir={config.workdir!r}: set exactly '
    'one of the two.',
  )
  if config.behavior:
    return behaviors.Exported(config.behavior)
  return runs.load_run(config.workdir)


def run(config: EvaluationConfig) -> None:
  """Plays the episodes, prints their metrics, and writes the output files."""
  compilation_cache.enable()
  policy = load(config)
  agent = assembly.moved(policy.agent, config.env)
  recordings = episode_records.play(
    agent,
    policy.learned,
    episodes=config.episodes,
    seed=config.seed,
    epsilon=config.epsilon if config.epsilon >= 0 else None,
    flights=config.flights,
    video=config.video,
    max_frames=config.max_video_steps,
  )
  rows = [recording.row for recording in recordings]
  if config.output:
    played = {
      'actor_steps': policy.actor_steps,
      'params_sha256': exported_folder.checksum(policy.variables),
      'seed': config.seed,
    }
    names = (
      environments.name_of(agent.spec.name, int(row['environment']))
      for row in rows
    )
    table = [
      {'episode': i, 'env': name, **played, **row}
      for i, (name, row) in enumerate(zip(names, rows, strict=True))
    ]
    try:
      files.write_text(config.output, tables.csv_text(table), replaces=False)
    except FileExistsError as error:  # Another evaluation was faster.
      raise ValueError(_EXISTS.format(config.output)) from error
    output.show(f'Episodes: {config.output}')
  output.show(f'{agent.spec.name}, {tables.counted(len(rows), "episode")}')
  output.show(_table(rows))
  if config.video:
    num_frames = min(len(recordings[0].actions) + 1, config.max_video_steps)
    frames = tables.counted(num_frames, 'frame')
    output.show(f'Video of episode 0: {config.video} ({frames})')


def _table(rows: list[dict[str, float]]) -> str:
  """Returns a text table of the episodes' metrics, with a last row of means."""
  values = np.array([[row[name] for name in _SHOWN] for row in rows])
  labelled = [*enumerate(values), ('mean', values.mean(axis=0))]
  cells = [[label, *(f'{x:.3f}' for x in row)] for label, row in labelled]
  return tables.table(['episode', *_SHOWN.values()], cells)
