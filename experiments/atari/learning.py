"""Trains R2D2 on a game and draws its scores."""

import dataclasses

from bt_acme.evaluation import human_normalized_scores
from experiments import launching
from experiments.atari import runs, scores


@dataclasses.dataclass(frozen=True)
class LearnConfig(runs.TrainConfig):
  """Settings of training with R2D2."""

  script = 'run_r2d2.py'

  def __post_init__(self) -> None:
    super().__post_init__()
    human_normalized_scores.reference_scores(self.game)


def run(
  config: LearnConfig, *, launch: launching.Launch = launching.launch
) -> int:
  """Trains unless `draw_only` is set, then draws and prints the scores.

  Args:
    config: the settings.
    launch: runs a launch script with flags and returns its exit code.

  Returns:
    An exit code.
  """
  code = runs.train(config, launch)
  if code == 0:
    scores.show(scores.read(config.folder, config.game))
  return code
