r"""Learns a task with R2D2 and behavior transfer.

  python launch/run_bt.py --behavior=runs/ngu/behavior \
    --env=MiniGrid-LavaCrossingS9N1-v0:fixed --preset=minigrid \
    --max_actor_steps=60000 --workdir=runs/bt

With --behavior=action_repeat and --extra_action=false this is ez-greedy R2D2.
Ctrl-C ends a run, and the same command resumes it.
"""

import dataclasses

from bt_acme import config as config_lib
from bt_acme.agents import BTBuilder, R2D2Builder
from bt_acme.cli import flags, initial_weights, named_behaviors
from bt_acme.cli import run as run_cli
from bt_acme.cli import settings as settings_cli
from bt_acme.config import run as run_config


@dataclasses.dataclass(frozen=True)
class Settings(config_lib.BTConfig):
  """All settings of this script."""

  run: run_config.RunConfig = run_config.RunConfig(workdir='runs/bt')
  behaviors: named_behaviors.BehaviorsConfig = named_behaviors.BehaviorsConfig()
  weights: initial_weights.WeightsConfig = initial_weights.WeightsConfig()


def main(argv):
  del argv
  settings = settings_cli.read(Settings)
  run, transfer = settings.run, settings.transfer
  config = settings_cli.agent_config(config_lib.R2D2Config, settings)
  builder = BTBuilder(
    R2D2Builder(config, run_cli.environment_spec(run)),
    named_behaviors.make(settings.behaviors, transfer),
    transfer,
    behavior_weights=settings.behaviors.weights,
  )
  return run_cli.launch(
    run,
    builder,
    initial_params=initial_weights.load(
      settings.weights, builder.agent, run.seed
    ),
    identity={
      'behaviors': dataclasses.asdict(settings.behaviors),
      'weights': dataclasses.asdict(settings.weights),
    },
  )


if __name__ == '__main__':
  settings_cli.define(Settings)
  flags.run_main(main, Settings)
