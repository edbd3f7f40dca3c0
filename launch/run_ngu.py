r"""Pre-trains a behavior without rewards, and exports it.

  python launch/run_ngu.py --env=MiniGrid-LavaCrossingS9N1-v0:fixed \
    --preset=minigrid --max_actor_steps=120000 --workdir=runs/ngu

The exported behavior lies in WORKDIR/behavior. Ctrl-C ends a run, and the same
command resumes it.
"""

import dataclasses

from bt_acme import config as config_lib
from bt_acme.agents import NGUBuilder
from bt_acme.cli import flags
from bt_acme.cli import run as run_cli
from bt_acme.config import run as run_config


@dataclasses.dataclass(frozen=True)
class Settings(config_lib.NGUConfig):
  """All settings of this script."""

  run: run_config.RunConfig = run_config.RunConfig(workdir='runs/ngu')


def main(argv):
  del argv
  settings = run_cli.settings(Settings)
  config = run_cli.config_of(config_lib.NGUConfig, settings)
  run = settings.run
  code = run_cli.launch(run, NGUBuilder(config, run_cli.environment_spec(run)))
  if code == 0:
    print(f'The behavior is in {run.behavior_folder}')
  return code


if __name__ == '__main__':
  run_cli.define(Settings)
  flags.run_main(main, Settings)
