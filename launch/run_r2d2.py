r"""Learns a task with R2D2 and Peng's Q(lambda), without behavior transfer.

  python launch/run_r2d2.py --env=MiniGrid-LavaCrossingS9N1-v0:fixed \
    --preset=minigrid --max_actor_steps=60000 --workdir=runs/r2d2

Ctrl-C ends a run, and the same command resumes it.
"""

import dataclasses

from bt_acme import config as config_lib
from bt_acme import flags, run_config, run_script
from bt_acme.agents import R2D2Builder


@dataclasses.dataclass(frozen=True)
class Settings(config_lib.R2D2Config):
  """All settings of this script."""

  run: run_config.RunConfig = run_config.RunConfig(workdir='runs/r2d2')
  weights: run_script.WeightsConfig = run_script.WeightsConfig()


def main(argv):
  del argv
  settings = run_script.settings(Settings)
  config = run_script.config_of(config_lib.R2D2Config, settings)
  run = settings.run
  builder = R2D2Builder(config, run_script.environment_spec(run))
  return run_script.launch(
    run,
    builder,
    initial_params=run_script.initial_params(
      settings.weights, builder.agent, run.seed
    ),
    identity={'weights': dataclasses.asdict(settings.weights)},
  )


if __name__ == '__main__':
  run_script.define(Settings)
  flags.run_main(main, Settings)
