r"""Learns tasks one after the other; each policy joins a bank of behaviors.

  goals=MiniGrid-FourRooms-v0:fixed=5:goal
  python launch/run_continual.py --env=$goals=0,$goals=1,$goals=2 \
    --bank=runs/bank --preset=minigrid --max_actor_steps=40000 \
    --workdir=runs/continual

--env lists the tasks, and --max_actor_steps is the budget of each of them.
Ctrl-C stops the current run, and the same command resumes it; finished tasks
are not repeated.
"""

import dataclasses

from bt_acme.runtime import interrupts

if __name__ == '__main__':
  interrupts.end_at_once()  # Before the imports that take seconds.

from bt_acme import config as config_lib
from bt_acme.api import continual
from bt_acme.cli import training
from bt_acme.config import run as run_config
from bt_acme.launching import named_behaviors


@dataclasses.dataclass(frozen=True)
class Settings(config_lib.BTConfig):
  """All settings of this script."""

  run: run_config.RunConfig = run_config.RunConfig(
    workdir='runs/continual', lp_launch_type='in_process'
  )
  behaviors: named_behaviors.BehaviorsConfig = named_behaviors.BehaviorsConfig(
    bank='runs/bank'
  )


if __name__ == '__main__':
  training.run_main(Settings, continual.start)
