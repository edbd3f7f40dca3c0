r"""Pre-trains a behavior without rewards (NGU), and exports it.

  python launch/run_ngu.py --env=MiniGrid-FourRooms-v0:no_goal \
    --preset=minigrid --max_actor_steps=40000 --workdir=runs/ngu

The run exports the behavior to WORKDIR/behavior. Ctrl-C stops a run, and the
same command resumes it.
"""

import dataclasses

from bt_acme.runtime import interrupts

if __name__ == '__main__':
  interrupts.end_at_once()  # Before the imports that take seconds.

from bt_acme import config as config_lib
from bt_acme.cli import training
from bt_acme.config import run as run_config


@dataclasses.dataclass(frozen=True)
class Settings(config_lib.NGUConfig):
  """All settings of this script."""

  run: run_config.RunConfig = run_config.RunConfig(workdir='runs/ngu')


if __name__ == '__main__':
  training.run_main(Settings)
