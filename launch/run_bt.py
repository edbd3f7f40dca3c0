r"""Trains R2D2 with behavior transfer.

  python launch/run_bt.py --behavior=runs/ngu/behavior \
    --env=MiniGrid-FourRooms-v0:fixed --preset=minigrid_pretrained \
    --max_actor_steps=40000 --workdir=runs/bt

With --behavior=action_repeat and --extra_action=false this is ez-greedy R2D2.
Ctrl-C stops a run, and the same command resumes it.
"""

import dataclasses

from bt_acme.runtime import interrupts

if __name__ == '__main__':
  interrupts.end_at_once()  # Before the imports that take seconds.

from bt_acme import config as config_lib
from bt_acme.cli import training
from bt_acme.config import run as run_config
from bt_acme.launching import initial_weights, named_behaviors


@dataclasses.dataclass(frozen=True)
class Settings(config_lib.BTConfig):
  """All settings of this script."""

  run: run_config.RunConfig = run_config.RunConfig(workdir='runs/bt')
  behaviors: named_behaviors.BehaviorsConfig = named_behaviors.BehaviorsConfig()
  weights: initial_weights.WeightsConfig = initial_weights.WeightsConfig()


if __name__ == '__main__':
  training.run_main(Settings)
