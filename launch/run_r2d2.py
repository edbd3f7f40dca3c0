r"""Trains R2D2 with Peng's Q(lambda), without behavior transfer.

  python launch/run_r2d2.py --env=MiniGrid-FourRooms-v0:fixed \
    --preset=minigrid --max_actor_steps=40000 --workdir=runs/r2d2

With --init_from=runs/ngu/behavior the run fine-tunes a pre-trained network.
Ctrl-C stops a run, and the same command resumes it.
"""

import dataclasses

from bt_acme.runtime import interrupts

if __name__ == '__main__':
  interrupts.end_at_once()  # Before the imports that take seconds.

from bt_acme import config as config_lib
from bt_acme.cli import training
from bt_acme.config import run as run_config
from bt_acme.launching import initial_weights


@dataclasses.dataclass(frozen=True)
class Settings(config_lib.R2D2Config):
  """All settings of this script."""

  run: run_config.RunConfig = run_config.RunConfig(workdir='runs/r2d2')
  weights: initial_weights.WeightsConfig = initial_weights.WeightsConfig()


if __name__ == '__main__':
  training.run_main(Settings)
