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
from typing import Any, Callable, NoReturn

from bt_acme.cli import flags
from bt_acme.config import names
from experiments import command_line
from experiments.atari import exploring, learning

# The settings and the main function of each command.
_COMMANDS: dict[str, tuple[type, Callable[[Any], int]]] = {
  'learn': (learning.LearnConfig, learning.run),
  'explore': (exploring.ExploreConfig, exploring.run),
}


def run() -> None:
  """Runs the command named on the command line and exits."""
  script, *arguments = sys.argv
  command = arguments[0] if arguments else ''
  if command in _COMMANDS:
    sys.argv = [script, *arguments[1:]]
    command_line.run(command, *_COMMANDS[command])
  # Flags are only defined together with their command.
  sys.argv = [script, *({'--help', '-h'} & set(arguments))]
  flags.run_main(functools.partial(_refuse, command))


def _refuse(command: str, argv: list[str]) -> NoReturn:
  del argv
  raise ValueError(
    f'command={command!r} is unknown: '
    + names.suggest(command, sorted(_COMMANDS))
  )


if __name__ == '__main__':
  run()
