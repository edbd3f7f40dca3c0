r"""Pre-trains a behavior without rewards (NGU), and exports it.

  python launch/run_ngu.py --env=MiniGrid-LavaCrossingS9N1-v0:fixed \
    --preset=minigrid --max_actor_steps=120000 --workdir=runs/ngu

The run exports the behavior to WORKDIR/behavior. Ctrl-C stops a run, and the
same command resumes it.
"""

import dataclasses

from bt_acme import assembly
from bt_acme import config as config_lib
from bt_acme.cli import flags
from bt_acme.cli import run as run_cli
from bt_acme.cli import settings as settings_cli
from bt_acme.config import run as run_config


@dataclasses.dataclass(frozen=True)
class Settings(config_lib.NGUConfig):
  """All settings of this script."""

  run: run_config.RunConfig = run_config.RunConfig(workdir='runs/ngu')


def main(argv):
  """Trains the agent."""
  del argv
  settings = settings_cli.read(Settings)
  run = settings.run
  config = settings_cli.agent_config(config_lib.NGUConfig, settings)
  agent = assembly.Agent(config, run_cli.environment_spec(run))
  code = run_cli.launch(run, agent)
  if code == 0:
    print(f'Behavior exported to {run.behavior_folder}')
  return code


if __name__ == '__main__':
  settings_cli.define(Settings)
  flags.run_main(main, Settings)
