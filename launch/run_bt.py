r"""Trains R2D2 with behavior transfer.

  python launch/run_bt.py --behavior=runs/ngu/behavior \
    --env=MiniGrid-LavaCrossingS9N1-v0:fixed --preset=minigrid \
    --max_actor_steps=60000 --workdir=runs/bt

With --behavior=action_repeat and --extra_action=false this is ez-greedy R2D2.
Ctrl-C stops a run, and the same command resumes it.
"""

import dataclasses

from bt_acme import assembly
from bt_acme import config as config_lib
from bt_acme.cli import checksums, flags, initial_weights, named_behaviors
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
  """Trains the agent."""
  del argv
  settings = settings_cli.read(Settings)
  run = settings.run
  transferred = named_behaviors.make(settings.behaviors, settings.transfer)
  agent = assembly.Agent(
    settings_cli.agent_config(config_lib.BTConfig, settings),
    run_cli.environment_spec(run),
    tuple(transferred),
    settings.behaviors.weights,
  )
  return run_cli.launch(
    run,
    agent,
    initial_params=initial_weights.load(settings.weights, agent, run.seed),
    identity={
      'behaviors': dataclasses.asdict(settings.behaviors),
      'weights': dataclasses.asdict(settings.weights),
      **checksums.compute(transferred, settings.weights),
    },
  )


if __name__ == '__main__':
  settings_cli.define(Settings)
  flags.run_main(main, Settings)
