"""Learns real Atari games on two cores.

  python -m experiments.atari learn --game=road_runner
  python -m experiments.atari explore

`learn` trains R2D2 on a game and compares its scores with those of a random
agent and a human. `explore` pre-trains NGU on Montezuma's Revenge without
rewards and compares the rooms that it visits with those of a random policy.
Both commands train with the launch scripts and `--preset=atari_small`. Ctrl-C
stops a run, and the same command resumes it. `--draw_only` skips training.

Run `python -m experiments.atari learn --help` to list the flags of a command.
"""

import functools
import sys
from typing import Any, Callable

from bt_acme.cli import flags
from experiments import command_line
from experiments.atari import exploring, learning

# The settings of each command, and the function that shows its run.
_COMMANDS: dict[str, tuple[type, Callable[[Any], None]]] = {
  'learn': (learning.TrainConfig, learning.show),
  'explore': (exploring.ExploreConfig, exploring.show),
}


def run() -> None:
  """Runs the command named on the command line and exits."""
  script, *words = sys.argv
  command = words[0] if words else ''
  if command in _COMMANDS:
    sys.argv = [script, *words[1:]]
    config_class, show = _COMMANDS[command]
    main = functools.partial(learning.run, show=show)
    command_line.run(command, config_class, main)

  def refuse(argv: list[str]) -> None:
    del argv
    command_line.known('command', command, sorted(_COMMANDS))

  # Flags are only defined together with their command.
  sys.argv = [script, *({'--help', '-h'} & set(words))]
  flags.run_main(refuse)


if __name__ == '__main__':
  run()
