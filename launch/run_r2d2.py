r"""Learns a task with R2D2 and Peng's Q(lambda), without behavior transfer.

  python launch/run_r2d2.py --env=MiniGrid-LavaCrossingS9N1-v0:fixed \
    --preset=minigrid --max_actor_steps=60000 --workdir=runs/r2d2

Ctrl-C ends a run, and the same command resumes it.
"""

import dataclasses

from bt_acme import config as config_lib
from bt_acme.agents import R2D2Builder
from bt_acme.cli import flags
from bt_acme.cli import run as run_cli
from bt_acme.config import run as run_config


@dataclasses.dataclass(frozen=True)
class Settings(config_lib.R2D2Config):
  """All settings of this script."""

  run: run_config.RunConfig = run_config.RunConfig(workdir='runs/r2d2')
  weights: run_cli.WeightsConfig = run_cli.WeightsConfig()


def main(argv):
  del argv
  settings = run_cli.settings(Settings)
  config = run_cli.config_of(config_lib.R2D2Config, settings)
  run = settings.run
  builder = R2D2Builder(config, run_cli.environment_spec(run))
  return run_cli.launch(
    run,
    builder,
    initial_params=run_cli.initial_params(
      settings.weights, builder.agent, run.seed
    ),
    identity={'weights': dataclasses.asdict(settings.weights)},
  )


if __name__ == '__main__':
  run_cli.define(Settings)
  flags.run_main(main, Settings)
