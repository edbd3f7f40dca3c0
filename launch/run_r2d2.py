r"""Trains R2D2 with Peng's Q(lambda), without behavior transfer.

  python launch/run_r2d2.py --env=MiniGrid-LavaCrossingS9N1-v0:fixed \
    --preset=minigrid --max_actor_steps=60000 --workdir=runs/r2d2

With --init_from=runs/ngu/behavior the run fine-tunes a pre-trained network.
Ctrl-C stops a run, and the same command resumes it.
"""

import dataclasses

from bt_acme import assembly
from bt_acme import config as config_lib
from bt_acme.cli import checksums, flags, initial_weights
from bt_acme.cli import run as run_cli
from bt_acme.cli import settings as settings_cli
from bt_acme.config import run as run_config


@dataclasses.dataclass(frozen=True)
class Settings(config_lib.R2D2Config):
  """All settings of this script."""

  run: run_config.RunConfig = run_config.RunConfig(workdir='runs/r2d2')
  weights: initial_weights.WeightsConfig = initial_weights.WeightsConfig()


def main(argv):
  """Trains the agent."""
  del argv
  settings = settings_cli.read(Settings)
  run = settings.run
  config = settings_cli.agent_config(config_lib.R2D2Config, settings)
  agent = assembly.Agent(config, run_cli.environment_spec(run))
  return run_cli.launch(
    run,
    agent,
    initial_params=initial_weights.load(settings.weights, agent, run.seed),
    identity={
      'weights': dataclasses.asdict(settings.weights),
      **checksums.compute(weights=settings.weights),
    },
  )


if __name__ == '__main__':
  settings_cli.define(Settings)
  flags.run_main(main, Settings)
