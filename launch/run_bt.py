r"""Learns a task with R2D2 and Behavior Transfer.

  python launch/run_bt.py --behavior=runs/ngu/behavior \
    --env=MiniGrid-LavaCrossingS9N1-v0:fixed --preset=minigrid \
    --max_actor_steps=60000 --workdir=runs/bt

With --behavior=action_repeat and --extra_action=false this is ez-greedy R2D2.
Ctrl-C ends a run, and the same command resumes it.
"""

import dataclasses

from bt_acme import config as config_lib
from bt_acme import flags, run_config, run_script
from bt_acme.agents import BTBuilder, R2D2Builder


@dataclasses.dataclass(frozen=True)
class Settings(config_lib.BTConfig):
  """All settings of this script."""

  run: run_config.RunConfig = run_config.RunConfig(workdir='runs/bt')
  behaviors: run_script.BehaviorsConfig = run_script.BehaviorsConfig()
  weights: run_script.WeightsConfig = run_script.WeightsConfig()


def main(argv):
  del argv
  settings = run_script.settings(Settings)
  config = run_script.config_of(config_lib.BTConfig, settings)
  run = settings.run
  builder = BTBuilder(
    R2D2Builder(
      run_script.config_of(config_lib.R2D2Config, settings),
      run_script.environment_spec(run),
    ),
    run_script.make_behaviors(settings.behaviors, config.transfer),
    config.transfer,
    behavior_weights=settings.behaviors.weights,
  )
  return run_script.launch(
    run,
    builder,
    initial_params=run_script.initial_params(
      settings.weights, builder.agent, run.seed
    ),
    identity={
      'behaviors': dataclasses.asdict(settings.behaviors),
      'weights': dataclasses.asdict(settings.weights),
    },
  )


if __name__ == '__main__':
  run_script.define(Settings)
  flags.run_main(main, Settings)
